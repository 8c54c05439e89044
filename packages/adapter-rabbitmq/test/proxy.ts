/** A TCP proxy that can break connections as a network does. */
import { connect, createServer, type Socket } from "node:net"
import type { AddressInfo } from "node:net"

export const proxy = async (target: number) => {
  const pairs = new Set<readonly [Socket, Socket]>()
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1")
    const pair = [client, upstream] as const
    pairs.add(pair)
    client.pipe(upstream).pipe(client)
    client.setNoDelay(true)
    upstream.setNoDelay(true)
    const end = () => {
      pairs.delete(pair)
      client.destroy()
      upstream.destroy()
    }
    for (const socket of pair) socket.on("error", end).on("close", end)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    cut: async () => {
      for (const [client, upstream] of pairs) {
        client.resetAndDestroy()
        upstream.resetAndDestroy()
      }
    }
  }
}
