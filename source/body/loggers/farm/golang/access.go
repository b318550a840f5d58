package main

import (
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/gofiber/fiber/v3"
	fiberlogger "github.com/gofiber/fiber/v3/middleware/logger"
	"github.com/gorilla/handlers"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/labstack/gommon/log"
)

// visit sends the requests of a customer to a server.
func visit(h http.Handler) {
	for _, at := range []struct{ method, path string }{
		{http.MethodGet, "/orders/4711?full=1"},
		{http.MethodPost, "/orders"},
		{http.MethodGet, "/errors/warn"},
	} {
		r := httptest.NewRequest(at.method, at.path, nil)
		r.RemoteAddr = "192.0.2.7:52814"
		r.Header.Set("User-Agent", "shop/1.0")
		r.Header.Set("Referer", "http://example.com/basket")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// answer returns the status of an answer to a request.
func answer(r *http.Request) int {
	switch {
	case r.Method == http.MethodPost:
		return http.StatusInternalServerError
	case r.URL.Path == "/errors/warn":
		return http.StatusNotFound
	}
	return http.StatusOK
}

func page(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(answer(r))
	_, _ = w.Write([]byte("an order\n"))
}

func ginAccess() {
	gin.SetMode(gin.ReleaseMode)
	g := gin.Default()
	g.NoRoute(func(c *gin.Context) { c.String(answer(c.Request), "an order\n") })
	visit(g)
}

func ginRecovery() {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.Use(gin.Recovery())
	g.NoRoute(func(*gin.Context) { panic("no till is open") })
	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	r.Header.Set("User-Agent", "shop/1.0")
	g.ServeHTTP(httptest.NewRecorder(), r)
}

func fiberAccess() {
	app := fiber.New(fiber.Config{})
	app.Use(fiberlogger.New())
	app.Use(func(c fiber.Ctx) error {
		if c.Method() == fiber.MethodPost {
			return errDeclined
		}
		return c.SendString("an order\n")
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, err := app.Test(httptest.NewRequest(method, "/orders/4711", nil)); err != nil {
			panic(err)
		}
	}
}

func chiAccess() {
	r := chi.NewRouter()
	r.Use(chimiddleware.Logger)
	r.HandleFunc("/*", page)
	visit(r)
}

func gorillaCombined() {
	visit(handlers.CombinedLoggingHandler(os.Stdout, http.HandlerFunc(page)))
}

func echoAccess() {
	e := echo.New()
	e.Use(middleware.Logger())
	e.Any("/*", func(c echo.Context) error { return c.String(answer(c.Request()), "an order\n") })
	visit(e)
}

func echoJSON() {
	e := echo.New()
	e.Logger.SetLevel(log.INFO)
	e.Logger.Info("order placed")
	e.Logger.Warn("stock is low")
	e.Logger.Errorf("payment failed: %v", charge(4712))
}
