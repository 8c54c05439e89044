/**
 * Sends one message to one nsqd. If it need not wait, which is the usual case, it is written immediately, without a
 * fiber and without a batch's bookkeeping. Together with the gathering of `Publisher`, this takes a third of the CPU
 * with 100 publishes in flight. `Chunks` handles all other cases.
 */
import { BrokerError, Direct } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Chunk, Chunks, ChunksDependencies, Placement, Sent } from "./chunk.ts"
import * as Outcomes from "./outcomes.ts"
import type { Publisher } from "./publisher.ts"
import { type Item, toPublication } from "./toPublication.ts"

interface SingleDependencies extends ChunksDependencies {
  readonly chunks: Chunks
  /** Limits a send from now on. */
  readonly limit: (items: ReadonlyArray<Item>) => Chunk["inTime"]
  /** Runs a send that waits. */
  readonly fork: (sent: Sent) => Fiber.Fiber<void, BrokerError.BrokerError>
}

/** A send in progress, and its outcomes. */
export interface Sending {
  /** Starts sending. The returned function cancels: nothing is written after that. */
  readonly begin: (onExit: (exit: Exit.Exit<void, BrokerError.BrokerError>) => void) => () => void
  readonly outcomes: () => Outcomes.Outcomes
}

export const make =
  ({ chunks, declare, fork, limit, nodes, now, publishing, room, settings }: SingleDependencies) =>
  (item: Item, placement: Placement): Sending => {
    const items = [item]
    let isWritten = false
    let known: Outcomes.Outcomes | undefined
    const outcomes = (): Outcomes.Outcomes => {
      known ??= Outcomes.make(1, settings.publishTimeout)
      if (isWritten) known.written(items)
      isWritten = false
      return known
    }

    const begin: Sending["begin"] = (onExit) => {
      const inTime = limit(items)
      let isGivenUp = false
      let interrupt: (() => void) | undefined
      const giveUp = (): void => {
        isGivenUp = true
        interrupt?.()
      }
      const wait = (sent: (chunk: Chunk) => Sent): (() => void) => {
        const chunk = { items, placement, inTime, outcomes: outcomes() }
        interrupt = Direct.run(room.within(1, sent(chunk), inTime), fork, onExit)
        return giveUp
      }
      const ordinarily = (chosen?: ReadonlyArray<Publisher>) => wait((chunk) => chunks.send(chunk, chosen))

      if (!room.has(1)) return ordinarily()
      const made = toPublication(item, { limits: nodes.limits(), envelope: settings.envelope, now: now() })
      if (made instanceof BrokerError.BrokerError) return Direct.ended(onExit, Exit.fail(made))
      const ready = publishing.ready(1, placement.prefer)
      const publisher = ready?.[0]
      const isDeclared = publisher !== undefined && !item.target.isOwn && declare.isDone(publisher.node, item.target)
      if (!isDeclared || made.defer > 0) return ordinarily(ready)
      room.take(1)
      isWritten = true
      publisher.write(made, false, (result) => {
        room.release(1)
        if (result === "Stored") return onExit(Exit.void)
        // A cancelled message is not written again.
        if (!isGivenUp) wait((chunk) => chunks.storeOn(chunk, [publisher], () => Effect.succeed([result])))
      })
      return giveUp
    }
    return { begin, outcomes }
  }
