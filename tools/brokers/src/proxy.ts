/** A TCP proxy on 127.0.0.1 that breaks connections on demand. */
import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"

export interface Proxy {
  readonly port: number
  /** Open connections. */
  readonly connections: () => number
  /** Resets all connections. New ones are let in. */
  readonly cut: () => void
  /** While on, nothing passes in either direction, the end of a connection neither: a partition. It passes later. */
  readonly blackhole: (on: boolean) => void
  /** While on, new connections are reset. */
  readonly refuse: (on: boolean) => void
  /** Milliseconds that bytes spend on the way, in each direction, from now on. */
  readonly delay: (milliseconds: number) => void
  readonly close: () => Promise<void>
}

/** Bytes of one direction that may be on the way before its sender has to wait. */
const window = 1 << 20

interface Piece {
  readonly due: number
  readonly size: number
  readonly pass: () => boolean
}

/** Sees the bytes of each direction as they arrive. Connections are counted from 1. */
export type Tap = (connection: number, from: "client" | "server", bytes: Buffer) => void

/** Forwards connections to a port of 127.0.0.1. */
export const proxy = async (target: number, tap?: Tap): Promise<Proxy> => {
  const sockets = new Set<Socket>()
  let accepted = 0
  let refusing = false
  let lag = 0
  let opened: PromiseWithResolvers<void> | undefined

  const forward = (from: Socket, to: Socket) => {
    const pieces: Array<Piece> = []
    let underway = 0
    let pumping = false
    const pump = async () => {
      if (pumping) return
      pumping = true
      for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
        // Timers fire up to a millisecond early.
        while (performance.now() < piece.due) await sleep(Math.ceil(piece.due - performance.now()))
        while (opened !== undefined) await opened.promise
        // A receiver that is gone never drains, or fails meanwhile; the piece after says so.
        if (!piece.pass() && !to.destroyed) await Promise.race([once(to, "drain"), once(to, "close")]).catch(() => {})
        underway -= piece.size
        if (underway < window) from.resume()
      }
      pumping = false
    }
    const put = (size: number, pass: () => boolean) => {
      pieces.push({ due: performance.now() + lag, size, pass })
      underway += size
      if (underway >= window) from.pause()
      void pump()
    }
    sockets.add(from)
    from.on("data", (bytes) => put(bytes.length, () => to.destroyed || to.write(bytes)))
    from.on("end", () => put(0, () => (to.end(), true)))
    // Its end follows as "close".
    from.on("error", () => {})
    from.on("close", (broken) => {
      sockets.delete(from)
      put(0, () => {
        if (broken) to.resetAndDestroy()
        else to.destroySoon()
        return true
      })
    })
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (refusing) {
      client.on("error", () => {})
      client.resetAndDestroy()
      return
    }
    const upstream = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true, noDelay: true })
    const connection = ++accepted
    client.on("data", (bytes) => tap?.(connection, "client", bytes))
    upstream.on("data", (bytes) => tap?.(connection, "server", bytes))
    forward(client, upstream)
    forward(upstream, client)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")

  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  const blackhole = (on: boolean) => {
    if (on) opened ??= Promise.withResolvers<void>()
    else {
      opened?.resolve()
      opened = undefined
    }
  }
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => sockets.size / 2,
    cut,
    blackhole,
    refuse: (on) => void (refusing = on),
    delay: (milliseconds) => void (lag = milliseconds),
    close: async () => {
      const closed = once(server, "close")
      server.close()
      cut()
      blackhole(false)
      await closed
    }
  }
}
