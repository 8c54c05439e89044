/** Connections to a broker that pushes, each restored when it breaks, and the requests over them. */
import { BrokerError } from "@requeue/core/port"
import * as Exit from "effect/Exit"
import type { Machine } from "../world/Machine.ts"
import type { Wire } from "../world/Wire.ts"
import type { Down, Server, Up } from "./Server.ts"

/** An error of this client. */
export const errorOf = (operation: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "push", operation, reason, detail })

/** Milliseconds after which an answer is late. */
const timeout = 10_000

/** The callback of an exchange that has ended. */
export type Then = (result: Exit.Exit<unknown, BrokerError.BrokerError>) => void

/** A connection that is restored when it breaks, after a pause. */
export interface Line {
  readonly isUp: () => boolean
  readonly epoch: () => number
  readonly send: (frame: Up) => void
  readonly ask: (operation: string, frame: (seq: number) => Up, then: Then) => void
  readonly close: () => void
}

interface LineOptions {
  readonly machine: Machine
  readonly server: Server
  readonly place: string
  readonly onUp?: () => void
  readonly onDown?: () => void
  readonly onDeliver?: (frame: Extract<Down, { _tag: "Deliver" }>) => void
}

/** Opens a line. It connects at once. */
export const open = ({ machine, onDeliver, onDown, onUp, place, server }: LineOptions): Line => {
  const asked = new Map<number, Then>()
  let wire: Wire<Up, Down> | undefined
  let epoch = 0
  let seq = 0
  let tries = 0
  let isClosed = false

  const end = (number: number, result: Exit.Exit<unknown, BrokerError.BrokerError>): void => {
    const then = asked.get(number)
    asked.delete(number)
    then?.(result)
  }

  const receive = (frame: Down): void => {
    if (frame._tag === "Deliver") return onDeliver?.(frame)
    if (frame._tag === "Done") return end(frame.seq, Exit.succeed(frame.value))
    const reason = frame.reason as BrokerError.Reason // the server's reasons are all reasons of errors
    end(frame.seq, Exit.fail(errorOf("exchange", reason, "the broker refuses it")))
  }

  const broken = (): void => {
    wire = undefined
    for (const number of asked.keys()) {
      end(number, Exit.fail(errorOf("exchange", "ConnectionLost", "the connection broke")))
    }
    onDown?.()
    if (!isClosed) again()
  }

  const again = (): void => {
    tries++
    machine.after(Math.min(100 * 2 ** tries, 5000), connect)
  }

  const connect = (): void => {
    if (isClosed) return
    const opened = server.connect(machine, place, { onDown: receive, onBroken: broken })
    if (opened === undefined) return again()
    wire = opened
    epoch++
    tries = 0
    onUp?.()
  }

  connect()
  return {
    isUp: () => wire !== undefined,
    epoch: () => epoch,
    send: (frame) => wire?.up(frame),
    ask: (operation, frame, then) => {
      if (wire === undefined) return then(Exit.fail(errorOf(operation, "ConnectionFailed", "there is no connection")))
      const number = ++seq
      asked.set(number, then)
      machine.after(timeout, () => end(number, Exit.fail(errorOf(operation, "Timeout", "no answer came"))))
      wire.up(frame(number))
    },
    close: () => {
      isClosed = true
      wire?.cut(true)
    }
  }
}
