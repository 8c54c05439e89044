/**
 * Publishes on the first daemon that is up, as each process orders them. A publish whose connection is lost before its
 * answer is written again, on any daemon, so that it may be stored twice.
 */
import type { BrokerError, Outgoing } from "@requeue/core/adapter-kit"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import type { World } from "../world/World.ts"
import * as Link from "./Link.ts"
import type { Down, Server, Settings, Up } from "./Server.ts"

/** How a publish has ended; `undefined`: it is stored. */
export type Then = (error?: BrokerError.BrokerError) => void

/** Publishes of one process. */
export interface Publisher {
  /** `of` is the delivery that it is a copy of; `prefer` the daemon that is the first choice. */
  readonly publish: (
    outgoing: Outgoing.Outgoing,
    of: number | undefined,
    prefer: Server | undefined,
    then: Then
  ) => void
  readonly isUp: () => boolean
  /** Waits until a daemon is up. */
  readonly ready: (then: Then) => void
}

/** The connection to one daemon, and what awaits its answers, which come in order. */
interface Line {
  readonly server: Server
  readonly current: () => Link.Opened | undefined
  readonly asked: Array<Asked>
}

/** `unread`: the daemon has refused one before it, and read nothing more. */
type Asked = (result: "stored" | "unread" | BrokerError.BrokerError) => void

/** How often a publish is written whose connection is lost. */
const rounds = 3

/** Opens connections to all daemons. `onChange` is called when one of them comes or goes. */
export const make = (
  world: World,
  machine: Machine,
  servers: ReadonlyArray<Server>,
  { cap }: Settings,
  onChange: () => void
): Publisher => {
  const waiting = new Set<() => void>()

  const lineTo = (server: Server): Line => {
    const asked: Array<Asked> = []
    const fail = (result: "unread" | BrokerError.BrokerError): void => {
      for (const each of asked.splice(0)) each(result)
    }
    const { current } = Link.keep(machine, server, `${machine.name} publish ${server.name}`, (connection) => {
      machine.after(0, changed)
      return {
        onDown: (frame: Down) => {
          if (frame._tag === "Ok") return asked.shift()?.("stored")
          if (frame._tag !== "Refused") return
          connection.cut(true)
          const reason = frame.reason as BrokerError.Reason // The server refuses with reasons of errors only.
          asked.shift()?.(Link.errorOf("publish", reason, "the daemon refuses it"))
          fail("unread")
        },
        onBroken: () => {
          machine.after(0, changed)
          fail(Link.errorOf("publish", "ConnectionLost", "the connection broke"))
        }
      }
    })
    return { server, current, asked }
  }

  const changed = (): void => {
    onChange()
    for (const each of [...waiting]) {
      if (pick(undefined) === undefined) return
      waiting.delete(each)
      each()
    }
  }

  const lines = servers.map(lineTo)
  const isOpen = ({ current }: Line): boolean => current()?.isOpen() === true
  const pick = (prefer: Server | undefined): Line | undefined =>
    lines.find((line) => line.server === prefer && isOpen(line)) ?? lines.find(isOpen)

  const publish: Publisher["publish"] = (outgoing, of, prefer, then) => {
    const parcel = Parcels.fromOutgoing(world, outgoing)
    let written: Line | undefined
    let lost: BrokerError.BrokerError | undefined
    let losses = 0
    let isOver = false

    const end: Then = (error) => {
      if (isOver) return
      isOver = true
      timer.run = undefined
      then(error)
    }
    const timer = machine.after(Link.timeout, () => {
      waiting.delete(write)
      if (written === undefined) return end(lost ?? Link.errorOf("publish", "ConnectionFailed", "no daemon is up"))
      end(Link.errorOf("publish", "Timeout", "no answer came"))
      // Later answers on this connection would come as late.
      written.current()?.cut(true)
    })
    const write = (): void => {
      written = pick(prefer)
      if (written === undefined) return void waiting.add(write)
      written.asked.push((result) => {
        written = undefined
        if (isOver) return
        if (result === "stored") return end()
        if (result === "unread") return write()
        if (result.reason !== "ConnectionLost") return end(result)
        lost = result
        if (++losses === rounds) end(lost)
        else write()
      })
      written.current()?.up(frameOf(outgoing, parcel, of))
    }
    write()
  }

  /** Time in which it waited for a connection counts. */
  const frameOf = (
    { delay, metadata, queue }: Outgoing.Outgoing,
    parcel: Extract<Up, { _tag: "Pub" }>["parcel"],
    of: number | undefined
  ): Up => {
    if (delay === 0) return { _tag: "Pub", queue, parcel, delay, of }
    const left = metadata.notBefore === 0 ? delay : Math.min(delay, metadata.notBefore - machine.wallClock())
    const wait = Math.max(1, Math.ceil(left))
    if (wait > cap) return { _tag: "Pub", queue, parcel, delay: cap, of }
    return { _tag: "Pub", queue, parcel: { ...parcel, deferred: wait }, delay: wait, of }
  }

  return {
    publish,
    isUp: () => lines.some(isOpen),
    ready: (then) => {
      const isReady = (): void => {
        timer.run = undefined
        then()
      }
      const timer = machine.after(Link.timeout, () => {
        waiting.delete(isReady)
        then(Link.errorOf("subscribe", "ConnectionFailed", "no daemon is up"))
      })
      if (pick(undefined) === undefined) waiting.add(isReady)
      else isReady()
    }
  }
}
