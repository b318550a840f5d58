import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** The shop for Tomcat. */
public class OrdersServlet extends HttpServlet {
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (request.getPathInfo().equals("/1002")) {
            throw new IllegalArgumentException("negative amount: -5");
        }
        response.getWriter().println("ok");
    }
}
