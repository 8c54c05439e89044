/** A TCP proxy on 127.0.0.1 that breaks connections on demand. */
import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"

/** A running proxy. */
export interface TcpProxy {
  readonly port: number
  /** The number of open connections. */
  readonly connections: () => number
  /** Resets all connections. New ones are accepted. */
  readonly cut: () => void
  /** While on, nothing passes in either direction, not even the end of a connection: a partition. It passes later. */
  readonly blackhole: (on: boolean) => void
  /** While on, new connections are reset. */
  readonly refuse: (on: boolean) => void
  /** Delays bytes from now on, by this many milliseconds in each direction. */
  readonly delay: (milliseconds: number) => void
  readonly close: () => Promise<void>
}

/** The maximum number of bytes in flight in one direction; beyond it, their sender has to wait. */
const window = 1 << 20

interface Piece {
  readonly due: number
  readonly size: number
  readonly pass: () => boolean
}

/** The state of a proxy. */
interface State {
  readonly sockets: Set<Socket>
  /** The milliseconds that bytes are in flight. */
  lag: number
  refusing: boolean
  /** Ends with the partition; `undefined` while there is none. */
  opened: PromiseWithResolvers<void> | undefined
}

/** Returns after how many of these bytes the connection breaks; `undefined` if all of them pass. */
type Gate = (bytes: Buffer) => number | undefined

/** Returns the replacement of these bytes; it may keep some until more have arrived. `undefined`: the connection breaks. */
type Change = (bytes: Buffer) => Buffer | undefined

/** Forwards everything from one socket to another, in order and with the proxy's delay. `held` ends when it may pass. */
const forward = (
  from: Socket,
  to: Socket,
  state: State,
  { change, gate, held }: { readonly gate?: Gate; readonly held?: () => Promise<void>; readonly change?: Change }
): void => {
  const pieces: Array<Piece> = []
  let underway = 0
  let pumping = false
  const pump = async () => {
    if (pumping) return
    pumping = true
    for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
      // Timers fire up to a millisecond early.
      while (performance.now() < piece.due) await sleep(Math.ceil(piece.due - performance.now()))
      while (state.opened !== undefined) await state.opened.promise
      await held?.()
      // A receiver that is gone never drains, or fails meanwhile; the next piece finds that out.
      if (!piece.pass() && !to.destroyed) await Promise.race([once(to, "drain"), once(to, "close")]).catch(() => {})
      underway -= piece.size
      if (underway < window) from.resume()
    }
    pumping = false
  }
  const put = (size: number, pass: () => boolean) => {
    pieces.push({ due: performance.now() + state.lag, size, pass })
    underway += size
    if (underway >= window) from.pause()
    void pump()
  }
  state.sockets.add(from)
  from.on("data", (bytes) => {
    const end = gate?.(bytes)
    const passed = change === undefined ? bytes.subarray(0, end) : change(bytes)
    if (passed === undefined) return void from.resetAndDestroy()
    put(passed.length, () => to.destroyed || to.write(passed))
    // The other side reads what has passed, and then the end; its answer is discarded.
    if (end !== undefined) from.resetAndDestroy()
  })
  from.on("end", () => put(0, () => (to.end(), true)))
  // "close" follows.
  from.on("error", () => {})
  from.on("close", (broken) => {
    state.sockets.delete(from)
    put(0, () => {
      if (broken) to.resetAndDestroy()
      else to.destroySoon()
      return true
    })
  })
}

/** Sees the bytes of each direction as they arrive. Connections are counted from 1. */
export type Tap = (connection: number, from: "client" | "server", bytes: Buffer) => void

/** Makes the gate of a new connection, for its client's bytes. `hold` keeps the server's answers back until then. */
export type MakeGate = (connection: number, hold: (until: Promise<void>) => void) => Gate

/** Makes the change of a new connection, for its server's bytes. */
type MakeChange = (connection: number) => Change

/** Forwards connections to a port of 127.0.0.1. */
export const proxy = async (
  target: number,
  tap?: Tap,
  makeGate?: MakeGate,
  makeChange?: MakeChange
): Promise<TcpProxy> => {
  const state: State = { sockets: new Set(), lag: 0, refusing: false, opened: undefined }
  let accepted = 0

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (state.refusing) {
      client.on("error", () => {})
      client.resetAndDestroy()
      return
    }
    const upstream = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true, noDelay: true })
    const connection = ++accepted
    client.on("data", (bytes) => tap?.(connection, "client", bytes))
    upstream.on("data", (bytes) => tap?.(connection, "server", bytes))
    let until = Promise.resolve()
    const gate = makeGate?.(connection, (promise) => {
      until = promise
    })
    forward(client, upstream, state, gate === undefined ? {} : { gate })
    const change = makeChange?.(connection)
    forward(upstream, client, state, { held: () => until, ...(change === undefined ? {} : { change }) })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo // the address of a TCP server

  const cut = () => {
    for (const socket of state.sockets) socket.resetAndDestroy()
  }
  const blackhole = (on: boolean) => {
    if (on) state.opened ??= Promise.withResolvers<void>()
    else {
      state.opened?.resolve()
      state.opened = undefined
    }
  }
  return {
    port,
    connections: () => state.sockets.size / 2,
    cut,
    blackhole,
    refuse: (on) => void (state.refusing = on),
    delay: (milliseconds) => void (state.lag = milliseconds),
    close: async () => {
      const closed = once(server, "close")
      server.close()
      cut()
      blackhole(false)
      await closed
    }
  }
}
