/**
 * The only file that imports the driver: opening connections, and what the other files need of them.
 *
 * Of nsqjs the protocol is used: handshake, frames, answers in order. Its messages are not (a timer each, a signed count
 * of attempts), nor its way to close (which throws away what it has not written), and what it leaves without a listener
 * has one here.
 */
// Packages that are checked with the sources of this one find the types of the driver by it.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference path="./nsqjs.d.ts" />
import { connect as secure } from "node:tls"
import * as Redacted from "effect/Redacted"
import { NSQDConnection, WriterNSQDConnection, type ConnectionOptions } from "nsqjs"
import type { Settings } from "../NsqOptions.ts"
import type { Address } from "./address.ts"

/** What nsqd said when we introduced ourselves. Times are in milliseconds. */
export interface Identity {
  readonly version: string
  readonly maxRdyCount: number
  readonly msgTimeout: number
  readonly maxMsgTimeout: number
}

/** What a connection tells. */
export interface Listener {
  /** A message's frame; see `toFrame`. */
  readonly message: (payload: Buffer) => void
  /** nsqd refused a command that others can follow, for example `E_FIN_FAILED FIN <id> failed ID not in flight`. */
  readonly refused: (text: string) => void
  /** Comes once, after everything else. */
  readonly closed: (error: unknown) => void
}

export interface Connection {
  readonly identity: Identity
  readonly isOpen: () => boolean
  /** How often something was heard; nsqd says something every heartbeat. */
  readonly heard: () => number
  /** Writes commands, and calls back when they have left us. */
  readonly write: (commands: string, done: (error: Error | null | undefined) => void) => void
  /** Says that nothing more is wanted; resolves when nsqd has answered, and with it handled all that was written before. */
  readonly stop: () => Promise<void>
  /** Writes what is left, and lets nsqd close the connection. */
  readonly end: () => void
  /** Drops the socket. */
  readonly destroy: (because?: Error) => void
}

export interface Publisher extends Connection {
  /** `defer` in milliseconds, for one message only. Calls back once, in order. */
  readonly publish: (
    topic: string,
    messages: ReadonlyArray<Buffer>,
    defer: number,
    done: (error: Error | null) => void
  ) => void
}

const toOptions = (settings: Settings, messageTimeout: number | undefined): ConnectionOptions => ({
  authSecret: settings.secret === undefined ? null : Redacted.value(settings.secret),
  deflate: settings.compression === "deflate",
  snappy: settings.compression === "snappy",
  heartbeatInterval: settings.heartbeat / 1000,
  messageTimeout: messageTimeout ?? null,
  outputBufferTimeout: settings.outputBufferTimeout,
  tls: settings.tls !== undefined
})

/** Everything in which a driver's connection behaves otherwise than ours should. */
const adopt = (native: NSQDConnection, settings: Settings, fail: (error: Error) => void): void => {
  // The frame itself, and not an object with a timer.
  native.createMessage = (payload) => payload
  const identify = native.identify.bind(native)
  native.identify = () => ({ ...identify(), user_agent: settings.userAgent })
  const receive = native.receiveData.bind(native)
  // What is no nsqd may answer with anything.
  native.receiveData = (data) => {
    try {
      receive(data)
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)))
    }
  }
  const compress = native.startCompression.bind(native)
  native.startCompression = (inflater, deflater) => {
    inflater.on("error", fail)
    deflater.on("error", fail)
    compress(inflater, deflater)
  }
  native.startTLS = () => startTls(native, settings)
}

/** As the driver does it, with the server's name, and with whatever else TLS takes. */
const startTls = (native: NSQDConnection, { tls }: Settings): void => {
  const socket = native.conn!
  for (const event of ["data", "error", "close"]) socket.removeAllListeners(event)
  const { passphrase, ...material } = tls ?? {}
  const secured = secure(
    {
      ...material,
      ...(passphrase === undefined ? {} : { passphrase: Redacted.value(passphrase) }),
      socket
    },
    () => (native.conn = secured)
  )
  native.outWriter = secured
  native.registerStreamListeners(secured)
}

/** Opens a connection; `ready` is asked for what it has become when nsqd has agreed to everything. */
const open = <A extends Connection>(
  native: NSQDConnection,
  settings: Settings,
  on: Listener,
  signal: AbortSignal,
  ready: (connection: Connection, spoil: () => void) => A
): Promise<A> =>
  new Promise((resolve, reject) => {
    let failure: Error | undefined
    let heard = 0
    let isReady = false
    let isSpoilt = false
    let isClosed = false
    let stopped: (() => void) | undefined

    const destroy = (because?: Error): void => {
      failure ??= because
      // The driver makes its socket a turn later, and fails without one.
      if (native.conn === null) return process.nextTick(destroy)
      native.statemachine.raise("close")
      native.conn?.destroy()
      closed()
    }
    const closed = (): void => {
      if (isClosed) return
      isClosed = true
      stopped?.()
      const error = failure ?? new Error("nsqd closed the connection")
      if (isReady) on.closed(error)
      else reject(error)
    }
    signal.addEventListener("abort", () => {
      if (!isReady) destroy(new Error("nobody waits for the connection any more"))
    })
    adopt(native, settings, destroy)
    // Every state of the driver hears what nsqd says through this one function.
    const raise = native.statemachine.raise.bind(native.statemachine)
    native.statemachine.raise = (event, data) => {
      if (event === "response" || event === "consumeMessage") heard++
      if (event === "response" && String(data) === "CLOSE_WAIT") stopped?.()
      return raise(event, data)
    }
    native.on("message", on.message)
    native.on("error", (error: Error) => {
      if (isReady && /^E_(FIN|REQ|TOUCH)_FAILED /.test(error.message)) on.refused(error.message)
      else failure ??= error
    })
    native.on("connection_error", (error: Error) => (failure ??= error))
    native.on("closed", closed)
    native.on("ready", () => {
      if (isReady) return
      isReady = true
      const connection: Connection = {
        identity: {
          version: native.nsqdVersion ?? "0.0",
          maxRdyCount: native.maxRdyCount,
          msgTimeout: native.msgTimeout,
          maxMsgTimeout: native.maxMsgTimeout
        },
        isOpen: () => !isClosed && !isSpoilt,
        heard: () => heard,
        write: (commands, done) => {
          if (isClosed) done(failure ?? new Error("the connection is closed"))
          else native.outWriter.write(commands, "latin1", done)
        },
        stop: () =>
          new Promise((resume) => {
            stopped = resume
            if (isClosed) resume()
            else native.outWriter.write("CLS\n")
          }),
        end: () => void native.outWriter.end(),
        destroy
      }
      resolve(ready(connection, () => (isSpoilt = true)))
    })
    native.connect()
  })

/** A connection that is handed the messages of a channel. */
export const subscribe = (
  settings: Settings,
  { host, port }: Address,
  request: { readonly topic: string; readonly channel: string; readonly messageTimeout: number | undefined },
  on: Listener,
  signal: AbortSignal
): Promise<Connection> => {
  const options = toOptions(settings, request.messageTimeout)
  return open(
    new NSQDConnection(host, port, request.topic, request.channel, options),
    settings,
    on,
    signal,
    (made) => made
  )
}

/** A connection that publishes. */
export const publisher = (
  settings: Settings,
  { host, port }: Address,
  closed: Listener["closed"],
  signal: AbortSignal
): Promise<Publisher> => {
  const native = new WriterNSQDConnection(host, port, toOptions(settings, settings.messageTimeout))
  const on: Listener = { message: () => {}, refused: () => {}, closed }
  return open(native, settings, on, signal, (made, spoil) => ({
    ...made,
    publish: (topic, messages, defer, done) => {
      // What is published in the same turn leaves us together.
      native.outWriter.cork()
      process.nextTick(() => native.outWriter.uncork())
      native.produceMessages(topic, messages, defer === 0 ? undefined : defer, (error) => {
        // The driver tells of the error before it closes, and would swallow what is published in between.
        if (error !== null) spoil()
        done(error)
      })
    }
  }))
}
