/**
 * A connection as nsqd sees it.
 *
 * | rule | source: https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go unless named |
 * | --- | --- |
 * | commands are carried out and answered in their order | `IOLoop` |
 * | FIN, REQ, TOUCH, RDY and NOP have no answer unless they fail | `Exec`, https://nsq.io/clients/tcp_protocol_spec.html |
 * | failed FIN, REQ and TOUCH keep the connection; every other error closes it, and later commands are not read | `FatalClientErr` in `IOLoop` |
 * | nothing more is sent while as many messages as RDY are in flight | `IsReadyForMessages` in client_v2.go |
 * | messages are held back until no more may be sent, a response is sent, 16 KiB are full, or `output_buffer_timeout` ticks | `messagePump` |
 * | CLS stops messages; what is in flight can still be settled; later RDY are ignored | `CLS`, `RDY` |
 * | REQ with too long a delay is cut to `--max-req-timeout`; before 1.1.0 it is refused | `REQ`, https://github.com/nsqio/nsq/pull/868 |
 * | a delay with a fraction, a sign or an exponent is refused | `ByteToBase10` |
 */
import type { Host } from "../Host.ts"
import type * as Channel from "./Channel.ts"
import { type Command } from "./Commands.ts"
import { connection as limits, type Flags } from "./Flags.ts"
import { type Message, toPayload } from "./Messages.ts"
import * as Names from "./Names.ts"
import * as Publish from "./Publish.ts"
import type { Topic } from "./Topic.ts"
import { isAtLeast } from "./Versions.ts"

/** What nsqd sends. */
export type Frame =
  | { readonly _tag: "Response" | "Error"; readonly text: string }
  | { readonly _tag: "Message"; readonly payload: Buffer }

/** The way to the client. */
export interface Output {
  readonly write: (frame: Frame) => void
  /** Closes the connection after what was written. */
  readonly close: () => void
}

/** The part of nsqd that a connection uses. */
export interface Daemon {
  readonly host: Host
  readonly flags: Flags
  readonly version: string
  /** Returns a topic, which is made if it is missing. */
  readonly topic: (name: string) => Topic
  /** Why nothing can be stored now; `undefined` if it can. */
  readonly trouble: () => string | undefined
}

export interface Session {
  readonly clientId: () => string
  /** The topic that it consumes. */
  readonly consumes: () => string | undefined
  readonly execute: (command: Command) => void
  /** The client has gone. */
  readonly leave: () => void
}

/** An error that closes the connection. */
export class Fatal extends Error {}

/** The answer to `IDENTIFY`, as far as clients read it. */
const identified = ({ flags, version }: Daemon, lease: number) =>
  JSON.stringify({
    max_rdy_count: flags.maxRdyCount,
    version,
    max_msg_timeout: flags.maxMsgTimeout,
    msg_timeout: lease,
    tls_v1: false,
    deflate: false,
    snappy: false,
    sample_rate: 0,
    auth_required: false
  })

/** Returns a requested number, or the default for 0 and none. */
const requested = (name: string, value: unknown, otherwise: number, least: number, most: number): number => {
  if (value === undefined || value === null || value === 0) return otherwise
  if (typeof value === "number" && value >= least && value <= most) return value
  throw new Fatal(`E_BAD_BODY IDENTIFY ${name} (${String(value)}) is invalid`)
}

/** Returns the milliseconds of a command. As in nsqd, a very large number overflows. */
export const millisOf = (command: string, text: string): number => {
  if (!/^\d+$/.test(text)) throw new Fatal(`E_INVALID ${command} could not parse timeout ${text}`)
  return Number(BigInt.asIntN(64, BigInt(text) * 1_000_000n) / 1_000_000n)
}

/** A new connection. */
// Long, because its commands share the state of one connection.
export const make = (daemon: Daemon, output: Output): Session => {
  const { flags, host, version } = daemon
  let state: "init" | "subscribed" | "closing" | "closed" = "init"
  let [clientId, lease, bufferTimeout, identifiedAt] = ["", flags.msgTimeout, 250, host.now()]
  let topic: string | undefined
  let channel: Channel.Channel | undefined
  let [ready, inFlight] = [0, 0]
  let buffered: Array<Buffer> = []
  let cancel = (): void => {}

  const flush = (): void => {
    cancel()
    for (const payload of buffered) output.write({ _tag: "Message", payload })
    buffered = []
  }
  const respond = (text: string, _tag: "Response" | "Error" = "Response"): void => {
    flush()
    output.write({ _tag, text })
  }
  const isReady = (): boolean => state === "subscribed" && inFlight < ready && channel?.isPaused() !== true

  /** Sends what may be sent. */
  const pump = (): void => {
    channel?.serve()
    if (!isReady()) flush()
  }
  const landed = (): void => {
    inFlight--
    pump()
  }

  const close = (): void => {
    if (state === "closed") return
    state = "closed"
    cancel()
    channel?.leave(client)
    output.close()
  }

  const client: Channel.Client = {
    get clientId() {
      return clientId
    },
    get lease() {
      return lease
    },
    isReady,
    send: (message: Message) => {
      inFlight++
      if (buffered.length === 0) {
        const ticks = Math.floor((host.now() - identifiedAt) / bufferTimeout) + 1
        cancel = host.after(identifiedAt + ticks * bufferTimeout - host.now(), flush)
      }
      buffered.push(toPayload(message))
      const size = buffered.reduce((sum, { length }) => sum + length, 0)
      if (!isReady() || size >= limits.outputBufferSize) flush()
    },
    timedOut: landed,
    emptied: () => {
      inFlight = 0
      pump()
    },
    close
  }

  /** Settles a message. Returns the text of a refusal. */
  const settle = (name: string, args: ReadonlyArray<string>): string | undefined => {
    if (state !== "subscribed" && state !== "closing") throw new Fatal(`E_INVALID cannot ${name} in current state`)
    const [id, delay] = args
    if (id === undefined || (name === "REQ" && delay === undefined)) {
      throw new Fatal(`E_INVALID ${name} insufficient number of params`)
    }
    if (id.length !== 16) throw new Fatal("E_INVALID invalid message ID")
    const failure = settleOf(name, id, delay)
    if (failure !== undefined) return `E_${name}_FAILED ${name} ${id} failed ${failure}`
    if (name !== "TOUCH") landed()
    return undefined
  }

  const settleOf = (name: string, id: string, delay = "0"): Channel.Failure => {
    if (name === "FIN") return channel!.finish(client, id)
    return name === "TOUCH" ? channel!.touch(client, id) : channel!.requeue(client, id, delayOf(delay))
  }

  const delayOf = (text: string): number => {
    const millis = millisOf("REQ", text)
    const isInRange = millis >= 0 && millis <= flags.maxReqTimeout
    if (!isInRange && !isAtLeast(version, "1.1.0")) {
      throw new Fatal(`E_INVALID REQ timeout ${millis * 1e6} out of range 0-${flags.maxReqTimeout * 1e6}`)
    }
    return Math.min(Math.max(0, millis), flags.maxReqTimeout)
  }

  const identify = (body: Buffer): string => {
    if (state !== "init") throw new Fatal("E_INVALID cannot IDENTIFY in current state")
    const data = JSON.parse(body.toString()) as Readonly<Record<string, unknown>> // clients write an object
    const { maxHeartbeatInterval, maxMsgTimeout } = flags
    const { maxOutputBufferTimeout, minOutputBufferTimeout } = limits
    requested("heartbeat interval", data["heartbeat_interval"], 30_000, 1000, maxHeartbeatInterval)
    const buffer = data["output_buffer_timeout"]
    bufferTimeout = requested("output buffer timeout", buffer, 250, minOutputBufferTimeout, maxOutputBufferTimeout)
    lease = requested("msg timeout", data["msg_timeout"], flags.msgTimeout, 1000, maxMsgTimeout)
    clientId = String(data["client_id"])
    identifiedAt = host.now()
    return identified(daemon, lease)
  }

  const subscribe = ([name = "", channelName]: ReadonlyArray<string>): string => {
    if (state !== "init") throw new Fatal("E_INVALID cannot SUB in current state")
    if (channelName === undefined) throw new Fatal("E_INVALID SUB insufficient number of parameters")
    if (!Names.isValid(name)) throw new Fatal(`E_BAD_TOPIC SUB topic name ${JSON.stringify(name)} is not valid`)
    if (!Names.isValid(channelName)) {
      throw new Fatal(`E_BAD_CHANNEL SUB channel name ${JSON.stringify(channelName)} is not valid`)
    }
    const found = daemon.topic(name).channel(channelName)
    const { maxChannelConsumers: most } = flags
    if (most > 0 && found.statistics().clients.length >= most) {
      throw new Fatal(`E_SUB_FAILED SUB failed consumers for ${name}:${channelName} exceeds limit of ${most}`)
    }
    found.subscribe(client)
    state = "subscribed"
    channel = found
    topic = name
    return "OK"
  }

  const setReady = ([text = "1"]: ReadonlyArray<string>): void => {
    if (state === "closing") return
    if (state !== "subscribed") throw new Fatal("E_INVALID cannot RDY in current state")
    if (!/^\d+$/.test(text)) throw new Fatal(`E_INVALID RDY could not parse count ${text}`)
    if (Number(text) > flags.maxRdyCount) {
      throw new Fatal(`E_INVALID RDY count ${text} out of range 0-${flags.maxRdyCount}`)
    }
    ready = Number(text)
    pump()
  }

  const stop = (): string => {
    if (state !== "subscribed") throw new Fatal("E_INVALID cannot CLS in current state")
    ready = 0
    state = "closing"
    return "CLOSE_WAIT"
  }

  const answer = ({ args, body, name }: Command): string | undefined => {
    switch (name) {
      case "IDENTIFY":
        return identify(body)
      case "SUB":
        return subscribe(args)
      case "RDY":
        return void setReady(args)
      case "CLS":
        return stop()
      case "NOP":
        return undefined
      case "FIN":
      case "REQ":
      case "TOUCH":
        return settle(name, args)
      case "PUB":
      case "MPUB":
      case "DPUB":
        return Publish.run(daemon, { args, body, name }, clientId)
      default:
        throw new Fatal(`E_INVALID invalid command ${name}`)
    }
  }

  return {
    clientId: () => clientId,
    consumes: () => topic,
    execute: (command) => {
      if (state === "closed") return
      try {
        const text = answer(command)
        if (text !== undefined) respond(text, text.startsWith("E_") ? "Error" : "Response")
      } catch (error) {
        if (!(error instanceof Fatal)) throw error
        respond(error.message, "Error")
        close()
      }
    },
    leave: () => {
      if (state === "closed") return
      state = "closed"
      cancel()
      channel?.leave(client)
    }
  }
}
