/**
 * Connections of the driver nsqjs. No other file imports it.
 *
 * nsqjs provides the protocol: handshake, frames, and answers in order. Its messages are not used, because each starts
 * a timer and counts attempts as a signed number; nor is its close, which drops unwritten commands.
 */
// Provides the driver's types to packages that compile these sources.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference path="./nsqjs.d.ts" />
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import { hostname } from "node:os"
import { connect as connectTls } from "node:tls"
import { Failure } from "@requeue/core/port"
import { TlsOptions } from "@requeue/kit"
import * as Context from "effect/Context"
import * as Redacted from "effect/Redacted"
import { NSQDConnection, WriterNSQDConnection, type ConnectionOptions } from "nsqjs"
import type { Settings } from "../NsqOptions.ts"
import type { Connection, Driver as DriverType, Identity, Listener } from "./driver.ts"
import * as Handshake from "./handshake.ts"
import { ask } from "./httpClient.ts"
import { closedText } from "./toBrokerError.ts"

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

/** Replaces driver methods whose behaviour no option of nsqjs changes. */
const replaceMethods = (native: NSQDConnection, settings: Settings, fail: (error: Error) => void): void => {
  const identify = native.identify.bind(native)
  const receiveData = native.receiveData.bind(native)
  const startCompression = native.startCompression.bind(native)
  // The listener receives bytes: the driver's message object would start a timer.
  native.createMessage = (payload) => payload
  // Otherwise the driver's own user agent is sent.
  native.identify = () => ({ ...identify(), user_agent: settings.userAgent })
  // `connectTimeout` replaces the driver's limit of 5 seconds.
  native.identifyTimeout = () => {}
  let isFirst = true
  // If the server is not nsqd, the driver waits for the rest of a frame, or throws an uncaught exception, which would
  // end the process.
  native.receiveData = (data) => {
    try {
      if (isFirst && !Handshake.isNsq(data)) throw new Error(Handshake.refusals.notNsq)
      isFirst = false
      receiveData(data)
    } catch (error) {
      fail(error instanceof Error ? error : new Error(Failure.summarize(error).message))
    }
  }
  // The driver does not handle errors of these streams: they would end the process.
  native.startCompression = (inflater, deflater) => {
    inflater.on("error", fail)
    deflater.on("error", fail)
    startCompression(inflater, deflater)
  }
  // The driver supports neither a server name nor a passphrase.
  native.startTLS = () => startTls(native, settings)
}

/** Repeats the driver's steps with all TLS options. */
const startTls = (native: NSQDConnection, { tls }: Settings): void => {
  // The driver would treat these unencrypted bytes as data from inside TLS.
  if (native.frameBuffer.buffer !== undefined) throw new Error(Handshake.refusals.early)
  const socket = native.conn!
  for (const event of ["data", "error", "close"]) socket.removeAllListeners(event)
  const host = native.nsqdHost
  // Without `host`, Node.js would check the certificate of an IP address against `localhost`.
  const name = isIP(host) === 0 ? { servername: host } : { host }
  const secured = connectTls(
    { ...name, ...TlsOptions.toNode(tls ?? {}, readFileSync), socket },
    () => (native.conn = secured)
  )
  native.outWriter = secured
  native.registerStreamListeners(secured)
}

/**
 * Calls `heard` for each answer, with its text, and for each message: nsqjs has no event for answers and heartbeats.
 * The driver does not receive a frame for which `heard` returns `false`.
 */
const onHeard = ({ statemachine }: NSQDConnection, heard: (response: string | undefined) => boolean): void => {
  // The driver passes every frame through this method.
  const raise = statemachine.raise.bind(statemachine)
  statemachine.raise = (event, data) => {
    const isFrame = event === "response" || event === "consumeMessage"
    if (isFrame && !heard(event === "response" ? String(data) : undefined)) return undefined
    return raise(event, data)
  }
}

/** Returns a function that removes the secret from an error: a server may echo what it received. */
const concealing = ({ secret }: Settings): ((error: Error) => Error) => {
  const text = secret === undefined ? "" : Redacted.value(secret)
  return text === ""
    ? (error) => error
    : (error) => (error.message.includes(text) ? new Error(error.message.replaceAll(text, () => "<redacted>")) : error)
}

/** Whether nsqd keeps the connection after this error. */
const isRefusal = ({ message }: Error): boolean => /^E_(FIN|REQ|TOUCH)_FAILED /.test(message)

const identityOf = (
  { maxMsgTimeout, maxRdyCount, msgTimeout, nsqdVersion }: NSQDConnection,
  notes: ReadonlyArray<string>
): Identity => ({ version: nsqdVersion ?? "0.0", maxRdyCount, msgTimeout, maxMsgTimeout, notes })

/** Opens a connection. Resolves after the handshake; rejects when it fails or the signal aborts. */
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
      // The driver creates its socket one turn later, and fails without it.
      if (native.conn === null) return process.nextTick(destroy)
      native.statemachine.raise("close")
      native.conn?.destroy()
      closed()
    }
    const closed = (): void => {
      if (isClosed) return
      isClosed = true
      // The driver's timer would keep the process alive.
      native.clearIdentifyTimeout()
      stopped?.()
      const error = failure ?? new Error(closedText)
      if (isReady) on.closed(error)
      else reject(error)
    }
    signal.addEventListener("abort", () => {
      if (!isReady) destroy(new Error("the connection attempt was cancelled"))
    })
    /** Reads the answer to `IDENTIFY`, before anything else is sent. Returns whether the connection may be used. */
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
      // Only the first answer is that to `IDENTIFY`.
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

const subscribe: Driver["subscribe"] = (settings, { host, port }, { channel, messageTimeout, topic }, on, signal) =>
  open(new NSQDConnection(host, port, topic, channel, toOptions(settings, messageTimeout)), settings, on, signal)

const connectPublisher: Driver["connectPublisher"] = async (settings, { host, port }, closed, signal) => {
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
        // Replaces the driver's `produceMessages`, whose encoder copies each message three times.
        native.messageCallbacks.push((error) => {
          // The driver calls back before the connection closes: messages published in between would be lost.
          if (error !== null) isRefused = true
          done(error && conceal(error))
        })
        native.outWriter.write(command)
      }
      native.outWriter.uncork()
    }
  }
}

/** The driver's type, under the name of its reference. */
export type Driver = DriverType

/** The driver that a broker uses from its start. Default: nsqjs, and Node's HTTP client. */
export const Driver: Context.Reference<Driver> = Context.Reference<Driver>("@requeue/adapter-nsq/Driver", {
  defaultValue: () => ({ subscribe, connectPublisher, ask })
})
