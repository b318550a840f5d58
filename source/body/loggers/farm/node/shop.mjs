// What the rows of Node share: a payment that fails, and a customer who sends requests.
import http from 'node:http'

export function charge (order) {
  const bank = new Error('card declined')
  const err = new Error(`charge order ${order}`, { cause: bank })
  err.code = 'EDECLINED'
  return err
}

export function decline () {
  return new Error('card declined')
}

// answer gives each request of visit its status.
export function answer (req, res) {
  res.statusCode = req.method === 'POST' ? 500 : req.url.startsWith('/errors') ? 404 : 200
  res.setHeader('Content-Length', 9)
  res.end('an order\n')
}

// visit sends requests to a server, one after the other, and stops it.
export function visit (server, paths = ['GET /orders/4711?full=1', 'POST /orders', 'GET /errors/warn']) {
  server.listen(0, '127.0.0.1', async () => {
    for (const at of paths) {
      const [method, path] = at.split(' ')
      await new Promise((resolve) => {
        const headers = { 'User-Agent': 'shop/1.0', Referer: 'http://example.com/basket' }
        http.request({ host: '127.0.0.1', port: server.address().port, method, path, headers, agent: false }, (res) => {
          res.resume()
          res.on('end', resolve)
        }).end()
      })
    }
    server.close()
  })
}
