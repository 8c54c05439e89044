/**
 * The connections of the driver. No other file imports it.
 *
 * Of nsqjs the protocol is used: handshake, frames, and answers in their order. Its messages are not used (each has a
 * timer, and a signed count of attempts), nor is its way to close, which drops commands that are not written yet.
 */
// Packages that are checked with the sources of this one find the types of the driver by it.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference path="./nsqjs.d.ts" />
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import { hostname } from "node:os"
import { connect as connectTls } from "node:tls"
import { Failure } from "@requeue/core/port"
import { TlsOptions } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import { NSQDConnection, WriterNSQDConnection, type ConnectionOptions } from "nsqjs"
import type { Settings } from "../NsqOptions.ts"
import type { Address } from "./address.ts"
import * as Handshake from "./handshake.ts"

/** The answer of nsqd to `IDENTIFY`. Times are in milliseconds. */
export interface Identity {
  readonly version: string
  readonly maxRdyCount: number
  readonly msgTimeout: number
  readonly maxMsgTimeout: number
  /** All that was asked for and is not had, for people. */
  readonly notes: ReadonlyArray<string>
}

/** The events of a connection. */
export interface Listener {
  /** A message has arrived, with the data of its frame; see `toFrame`. */
  readonly message: (payload: Buffer) => void
  /** nsqd refused a command and goes on, for example `E_FIN_FAILED FIN <id> failed ID not in flight`. */
  readonly refused: (text: string) => void
  /** The connection has closed. Comes once, after all other events. */
  readonly closed: (error: unknown) => void
}

/** A connection that nsqd has accepted. */
export interface Connection {
  /** The name under which nsqd lists this connection in its statistics; no other has it. */
  readonly clientId: string
  readonly identity: Identity
  readonly isOpen: () => boolean
  /** How many answers, heartbeats and messages have arrived. */
  readonly heard: () => number
  /** Writes commands. `done` is called when the socket has taken them, or with an error when it cannot. */
  readonly write: (commands: string, done: (error: Error | null | undefined) => void) => void
  /** Asks nsqd to send no more messages. Resolves when nsqd has handled all commands written before, or has closed. */
  readonly stop: () => Promise<void>
  /** Writes the remaining commands, and lets nsqd close the connection. */
  readonly end: () => void
  /** Drops the socket at once. */
  readonly destroy: (because?: Error) => void
}

/** A connection for publishing. */
export interface PublishingConnection extends Connection {
  /** Writes commands that publish, together. Calls each `done` once with nsqd's answer, in their order. */
  readonly publish: (commands: ReadonlyArray<PublishCommand>) => void
}

interface PublishCommand {
  readonly command: Buffer
  readonly done: (error: Error | null) => void
}

const toOptions = (settings: Settings, messageTimeout: number | undefined): ConnectionOptions => ({
  clientId: `${hostname().split(".")[0]}-${crypto.randomUUID().slice(0, 8)}`,
  authSecret: settings.secret === undefined ? null : Redacted.value(settings.secret),
  deflate: settings.compression === "deflate",
  snappy: settings.compression === "snappy",
  heartbeatInterval: settings.heartbeat / 1000,
  messageTimeout: messageTimeout ?? null,
  outputBufferTimeout: settings.outputBufferTimeout,
  tls: settings.tls !== undefined
})

/**
 * Replaces what the driver would do otherwise than this adapter needs. nsqjs has no options for it, and calls all these
 * methods on the connection itself; to replace them there spares a subclass of both of its connections.
 */
const replaceMethods = (native: NSQDConnection, settings: Settings, fail: (error: Error) => void): void => {
  const identify = native.identify.bind(native)
  const receiveData = native.receiveData.bind(native)
  const startCompression = native.startCompression.bind(native)
  // A message is given to the listener as bytes: the driver's object would start a timer.
  native.createMessage = (payload) => payload
  // The driver would name itself.
  native.identify = () => ({ ...identify(), user_agent: settings.userAgent })
  // The driver waits at most 5 seconds for the first answer. Here `connectTimeout` decides.
  native.identifyTimeout = () => {}
  let isFirst = true
  // The driver waits for the rest of a frame when a server that is no nsqd answers, or throws in the socket's event: the process
  // would end.
  native.receiveData = (data) => {
    try {
      if (isFirst && !Handshake.isNsq(data)) throw new Error(Handshake.refusals.notNsq)
      isFirst = false
      receiveData(data)
    } catch (error) {
      fail(error instanceof Error ? error : new Error(Failure.summarize(error).message))
    }
  }
  // The driver listens to no errors of these streams: the process would end.
  native.startCompression = (inflater, deflater) => {
    inflater.on("error", fail)
    deflater.on("error", fail)
    startCompression(inflater, deflater)
  }
  // The driver takes neither a server's name nor a passphrase.
  native.startTLS = () => startTls(native, settings)
}

/** The driver's own steps, with all options of TLS. */
const startTls = (native: NSQDConnection, { tls }: Settings): void => {
  // The driver would take it for what nsqd says behind TLS: a confirmation, or a message.
  if (native.frameBuffer.buffer !== undefined) throw new Error(Handshake.refusals.early)
  const socket = native.conn!
  for (const event of ["data", "error", "close"]) socket.removeAllListeners(event)
  const host = native.nsqdHost
  // Of a socket that is connected to an IP address Node.js would check the name `localhost`, whoever it belongs to.
  const name = isIP(host) === 0 ? { servername: host } : { host }
  const secured = connectTls(
    { ...name, ...TlsOptions.toNode(tls ?? {}, readFileSync), socket },
    () => (native.conn = secured)
  )
  native.outWriter = secured
  native.registerStreamListeners(secured)
}

/**
 * Calls back for each answer, with its text, and for each message. nsqjs has no event for answers and heartbeats. The
 * driver hears nothing of what is answered by `false`.
 */
const onHeard = ({ statemachine }: NSQDConnection, heard: (response: string | undefined) => boolean): void => {
  // Every state of the driver hears of every frame through this method.
  const raise = statemachine.raise.bind(statemachine)
  statemachine.raise = (event, data) => {
    const isFrame = event === "response" || event === "consumeMessage"
    if (isFrame && !heard(event === "response" ? String(data) : undefined)) return undefined
    return raise(event, data)
  }
}

/** A function that takes the secret out of an error: a server may send back what it was sent. */
const concealing = ({ secret }: Settings): ((error: Error) => Error) => {
  const text = secret === undefined ? "" : Redacted.value(secret)
  return text === ""
    ? (error) => error
    : (error) => (error.message.includes(text) ? new Error(error.message.replaceAll(text, () => "<redacted>")) : error)
}

/** nsqd's errors after which the connection goes on. */
const isRefusal = ({ message }: Error): boolean => /^E_(FIN|REQ|TOUCH)_FAILED /.test(message)

const identityOf = (
  { maxMsgTimeout, maxRdyCount, msgTimeout, nsqdVersion }: NSQDConnection,
  notes: ReadonlyArray<string>
): Identity => ({ version: nsqdVersion ?? "0.0", maxRdyCount, msgTimeout, maxMsgTimeout, notes })

/** Opens a connection. Resolves when nsqd has accepted all requests; rejects when that fails or the signal aborts. */
const open = (native: NSQDConnection, settings: Settings, on: Listener, signal: AbortSignal): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const insecure = Handshake.refusalOf(settings, native.nsqdHost)
    if (insecure !== undefined) return reject(new Error(insecure))
    const conceal = concealing(settings)
    let failure: Error | undefined
    let heard = 0
    let isReady = false
    let isClosed = false
    let stopped: (() => void) | undefined
    let handshake: Handshake.Handshake | undefined

    const destroy = (because?: Error): void => {
      if (because !== undefined) failure ??= conceal(because)
      // The driver makes its socket a turn later, and fails without one.
      if (native.conn === null) return process.nextTick(destroy)
      native.statemachine.raise("close")
      native.conn?.destroy()
      closed()
    }
    const closed = (): void => {
      if (isClosed) return
      isClosed = true
      // The driver's timer would keep the process.
      native.clearIdentifyTimeout()
      stopped?.()
      const error = failure ?? new Error("nsqd closed the connection")
      if (isReady) on.closed(error)
      else reject(error)
    }
    signal.addEventListener("abort", () => {
      if (!isReady) destroy(new Error("nobody waits for the connection any more"))
    })
    /** Reads the answer to `IDENTIFY`. Nothing else has been sent, and nothing more is where it is not what was asked for. */
    const mayGoOn = (answer: string): boolean => {
      handshake = Handshake.read(answer, settings)
      if (!handshake.wantsSecret) native.config.authSecret = null
      if (handshake.refusal === undefined) return true
      destroy(new Error(handshake.refusal))
      return false
    }
    replaceMethods(native, settings, destroy)
    onHeard(native, (response) => {
      heard++
      if (response === "CLOSE_WAIT") stopped?.()
      // The first answer, whatever else came before it.
      return handshake !== undefined || response === undefined || mayGoOn(response)
    })
    native.on("message", on.message)
    native.on("error", (error: Error) => {
      if (isReady && isRefusal(error)) on.refused(conceal(error).message)
      else failure ??= conceal(error)
    })
    native.on("connection_error", (error: Error) => (failure ??= error))
    native.on("closed", closed)
    native.on("ready", () => {
      if (isReady) return
      isReady = true
      resolve({
        clientId: native.config.clientId,
        identity: identityOf(native, handshake?.notes ?? []),
        isOpen: () => !isClosed,
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
      })
    })
    native.connect()
  })

/** Opens a connection that receives the messages of a channel. */
export const subscribe = (
  settings: Settings,
  { host, port }: Address,
  request: { readonly topic: string; readonly channel: string; readonly messageTimeout: number | undefined },
  on: Listener,
  signal: AbortSignal
): Promise<Connection> => {
  const options = toOptions(settings, request.messageTimeout)
  return open(new NSQDConnection(host, port, request.topic, request.channel, options), settings, on, signal)
}

/** Opens a connection for publishing. */
export const connectPublisher = async (
  settings: Settings,
  { host, port }: Address,
  closed: Listener["closed"],
  signal: AbortSignal
): Promise<PublishingConnection> => {
  const native = new WriterNSQDConnection(host, port, toOptions(settings, settings.messageTimeout))
  const connection = await open(native, settings, { message: () => {}, refused: () => {}, closed }, signal)
  const conceal = concealing(settings)
  /** Whether nsqd has refused a publish, after which it closes the connection. */
  let isRefused = false
  return {
    ...connection,
    isOpen: () => connection.isOpen() && !isRefused,
    publish: (commands) => {
      native.outWriter.cork()
      for (const { command, done } of commands) {
        // As the driver's `produceMessages`, whose encoder copies each message three times.
        native.messageCallbacks.push((error) => {
          // The driver calls back before the connection closes, and would lose what is published in between.
          if (error !== null) isRefused = true
          done(error && conceal(error))
        })
        native.outWriter.write(command)
      }
      native.outWriter.uncork()
    }
  }
}
