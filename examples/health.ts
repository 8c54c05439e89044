// Liveness and readiness endpoints. Run: node examples/health.ts
import { createServer } from "node:http"
import { connect, isLive, isReady } from "@requeue/core/promise"

const requeue = await connect("memory:")
await requeue.consume("orders", {}, async () => {})

const server = createServer((request, response) => {
  void requeue.health().then((health) => {
    const passes = request.url === "/livez" ? isLive(health) : isReady(health)
    response.writeHead(passes ? 200 : 503, { "content-type": "application/json" }).end(JSON.stringify(health))
  })
})
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const { port } = server.address() as { port: number }

for (const path of ["/livez", "/readyz"]) console.log(path, (await fetch(`http://127.0.0.1:${port}${path}`)).status)
server.close()
await requeue.close()

// prints:
// /livez 200
// /readyz 200
