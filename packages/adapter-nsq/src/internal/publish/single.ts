/**
 * Sends one message to one nsqd. Where it waits for nothing, as nearly always, it is written at once, without the books that
 * a batch needs. With the gathering of `Publisher`, a publish with 100 in flight takes a third of the CPU of one with books
 * and a command of its own. Whatever else happens is left to `Chunks`.
 */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Chunk, Chunks, ChunksDependencies, Placement, Sent } from "./chunk.ts"
import * as Outcomes from "./outcomes.ts"
import type { Publisher } from "./publisher.ts"
import { type Item, toPublication } from "./toPublication.ts"

interface SingleDependencies extends ChunksDependencies {
  readonly chunks: Chunks
  /** Limits what a message waits for from now on. */
  readonly limit: (items: ReadonlyArray<Item>) => Chunk["inTime"]
}

/** Messages that are sent, and what became of them. */
export interface Sending {
  readonly sent: Sent
  readonly outcomes: () => Outcomes.Outcomes
}

export const make =
  ({ chunks, declare, limit, nodes, now, publishing, room, settings }: SingleDependencies) =>
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

    const sent = Effect.suspend(() => {
      const inTime = limit(items)
      const chunk = (): Chunk => ({ items, placement, inTime, outcomes: outcomes() })
      const ordinarily = (chosen?: ReadonlyArray<Publisher>): Sent =>
        room.within(1, chunks.send(chunk(), chosen), inTime)

      if (!room.has(1)) return ordinarily()
      const made = toPublication(item, { limits: nodes.limits(), envelope: settings.envelope, now: now() })
      if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
      const ready = publishing.ready(1, placement.prefer)
      const publisher = ready?.[0]
      const isDeclared = publisher !== undefined && !item.target.isOwn && declare.isDone(publisher.node, item.target)
      if (!isDeclared || made.defer > 0) return ordinarily(ready)
      return Effect.callback<void, BrokerError.BrokerError>((resume) => {
        room.take(1)
        isWritten = true
        publisher.write(made, false, (result) => {
          room.release(1)
          if (result === "Stored") return resume(Exit.void)
          const first = () => Effect.succeed([result])
          resume(room.within(1, chunks.storeOn(chunk(), [publisher], first), inTime))
        })
      })
    })
    return { sent, outcomes }
  }
