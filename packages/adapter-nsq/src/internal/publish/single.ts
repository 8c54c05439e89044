/**
 * Sends one message to one nsqd. If it need not wait, which is the usual case, it is written immediately, without a
 * fiber and without a batch's bookkeeping. Together with the gathering of `Publisher`, this takes a third of the CPU
 * with 100 publishes in flight. `Chunks` handles all other cases.
 */
import { BrokerError, Direct, ShortList } from "@requeue/core/port"
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

type OnExit = (exit: Exit.Exit<void, BrokerError.BrokerError>) => void

/** A send in progress, and its outcomes. */
export interface Sending {
  /** Starts sending. The returned function cancels: nothing is written after that. */
  readonly begin: (onExit: OnExit) => () => void
  readonly outcomes: () => Outcomes.Outcomes
}

/** A send of one message. A class: see `ShortList`. */
class Single implements Sending {
  readonly #env: SingleDependencies
  readonly #items: ReadonlyArray<Item>
  readonly #item: Item
  readonly #placement: Placement
  #isWritten = false
  #isGivenUp = false
  #outcomes: Outcomes.Outcomes | undefined = undefined
  #interrupt: (() => void) | undefined = undefined

  constructor(env: SingleDependencies, item: Item, placement: Placement) {
    this.#env = env
    this.#items = ShortList.of(item)
    this.#item = item
    this.#placement = placement
  }

  outcomes(): Outcomes.Outcomes {
    this.#outcomes ??= Outcomes.make(1, this.#env.settings.publishTimeout)
    if (this.#isWritten) this.#outcomes.written(this.#items)
    this.#isWritten = false
    return this.#outcomes
  }

  begin(onExit: OnExit): () => void {
    const { chunks, declare, limit, nodes, now, publishing, room, settings } = this.#env
    const [item, placement] = [this.#item, this.#placement]
    const inTime = limit(this.#items)
    const ordinarily = (chosen?: ReadonlyArray<Publisher>) =>
      this.#wait((chunk) => chunks.send(chunk, chosen), inTime, onExit)

    if (!room.has(1)) return ordinarily()
    const made = toPublication(item, { limits: nodes.limits(), envelope: settings.envelope, now: now() })
    if (made instanceof BrokerError.BrokerError) return Direct.ended(onExit, Exit.fail(made))
    const ready = publishing.ready(1, placement.prefer)
    const publisher = ready?.[0]
    const isDeclared = publisher !== undefined && !item.target.isOwn && declare.isDone(publisher.node, item.target)
    if (!isDeclared || made.defer > 0) return ordinarily(ready)
    room.take(1)
    this.#isWritten = true
    publisher.write(made, false, (result) => {
      room.release(1)
      if (result === "Stored") return onExit(Exit.void)
      // A cancelled message is not written again.
      if (this.#isGivenUp) return
      this.#wait((chunk) => chunks.storeOn(chunk, [publisher], () => Effect.succeed([result])), inTime, onExit)
    })
    return this.#giveUp
  }

  readonly #giveUp = (): void => {
    this.#isGivenUp = true
    this.#interrupt?.()
  }

  #wait(sent: (chunk: Chunk) => Sent, inTime: Chunk["inTime"], onExit: OnExit): () => void {
    const { fork, room } = this.#env
    const chunk = { items: this.#items, placement: this.#placement, inTime, outcomes: this.outcomes() }
    this.#interrupt = Direct.run(room.within(1, sent(chunk), inTime), fork, onExit)
    return this.#giveUp
  }
}

/** Makes sends of one message. */
export const make =
  (dependencies: SingleDependencies) =>
  (item: Item, placement: Placement): Sending =>
    new Single(dependencies, item, placement)
