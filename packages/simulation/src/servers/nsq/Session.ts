/**
 * A connection as nsqd sees it.
 *
 * | rule | source: https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go unless named |
 * | --- | --- |
 * | commands are carried out and answered in their order | `IOLoop` |
 * | FIN, REQ, TOUCH, RDY and NOP have no answer unless they fail | `Exec`, https://nsq.io/clients/tcp_protocol_spec.html |
 * | failed FIN, REQ and TOUCH keep the connection; every other error closes it, and later commands are not read | `FatalClientErr` in `IOLoop` |
 * | nothing more is sent while as many messages as RDY are in flight | `IsReadyForMessages` in client_v2.go |
 * | CLS stops messages; what is in flight can still be settled; later RDY are ignored | `CLS`, `RDY` |
 */
import type { Channel } from "./Channel.ts"
import type { Command } from "./Commands.ts"
import type { Daemon } from "./Daemon.ts"
import { Fatal } from "./Fatal.ts"
import type * as Flights from "./Flights.ts"
import * as Identify from "./Identify.ts"
import { type Message, toPayload } from "./Messages.ts"
import * as Names from "./Names.ts"
import * as Outbox from "./Outbox.ts"
import * as Publish from "./Publish.ts"
import * as Settle from "./Settle.ts"

export interface Session {
  /** The topic that it consumes. */
  readonly consumes: () => string | undefined
  readonly execute: (command: Command) => void
  /** The client has gone. */
  readonly leave: () => void
}

/** A new connection. */
// Long, because its commands share the state of one connection.
export const make = (daemon: Daemon, output: Outbox.Output): Session => {
  const { flags } = daemon
  const outbox = Outbox.make(daemon.host, output)
  let state: "init" | "subscribed" | "closing" | "closed" = "init"
  let identity: Identify.Identified = { clientId: "", lease: flags.msgTimeout, bufferTimeout: 250 }
  let topic: string | undefined
  let channel: Channel | undefined
  let [ready, inFlight] = [0, 0]

  const isReady = (): boolean => state === "subscribed" && inFlight < ready && channel?.isPaused() !== true

  /** Sends what may be sent. */
  const pump = (): void => {
    channel?.serve()
    if (!isReady()) outbox.flush()
  }
  const landed = (): void => {
    inFlight--
    pump()
  }
  const leave = (): void => {
    if (state === "closed") return
    state = "closed"
    outbox.drop()
    channel?.leave(client)
  }
  const close = (): void => {
    if (state === "closed") return
    leave()
    output.close()
  }

  const client: Flights.Client = {
    get clientId() {
      return identity.clientId
    },
    get lease() {
      return identity.lease
    },
    isReady,
    send: (message: Message) => {
      inFlight++
      outbox.push(toPayload(message))
      if (!isReady()) outbox.flush()
    },
    timedOut: landed,
    emptied: () => {
      inFlight = 0
      pump()
    },
    close
  }

  /** Whether the command is allowed in these states. */
  const need = (name: string, ...states: ReadonlyArray<typeof state>): void => {
    if (!states.includes(state)) throw new Fatal(`E_INVALID cannot ${name} in current state`)
  }

  const identify = (body: Buffer): string => {
    need("IDENTIFY", "init")
    identity = Identify.read(daemon, body)
    outbox.start(identity.bufferTimeout)
    return Identify.response(daemon, identity)
  }

  const subscribe = ([name = "", channelName]: ReadonlyArray<string>): string => {
    need("SUB", "init")
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

  const setReady = ([text = "1"]: ReadonlyArray<string>): undefined => {
    if (state === "closing") return
    need("RDY", "subscribed")
    if (!/^\d+$/.test(text)) throw new Fatal(`E_INVALID RDY could not parse count ${text}`)
    if (Number(text) > flags.maxRdyCount) {
      throw new Fatal(`E_INVALID RDY count ${text} out of range 0-${flags.maxRdyCount}`)
    }
    ready = Number(text)
    pump()
  }

  const stop = (): string => {
    need("CLS", "subscribed")
    ready = 0
    state = "closing"
    return "CLOSE_WAIT"
  }

  const settle = ({ args, name }: Command): string | undefined => {
    need(name, "subscribed", "closing")
    const refusal = Settle.run(daemon, channel!, client, name, args)
    if (refusal === undefined && name !== "TOUCH") landed()
    return refusal
  }

  const answer = (command: Command): string | undefined => {
    const { args, body, name } = command
    if (name === "NOP") return undefined
    if (name === "IDENTIFY") return identify(body)
    if (name === "SUB") return subscribe(args)
    if (name === "RDY") return setReady(args)
    if (name === "CLS") return stop()
    if (/^(FIN|REQ|TOUCH)$/.test(name)) return settle(command)
    if (/^[DM]?PUB$/.test(name)) return Publish.run(daemon, command, identity.clientId)
    throw new Fatal(`E_INVALID invalid command ${name}`)
  }

  return {
    consumes: () => topic,
    execute: (command) => {
      if (state === "closed") return
      try {
        const text = answer(command)
        if (text !== undefined) outbox.respond(text, text.startsWith("E_") ? "Error" : "Response")
      } catch (error) {
        if (!(error instanceof Fatal)) throw error
        outbox.respond(error.message, "Error")
        close()
      }
    },
    leave
  }
}
