/**
 * Messages that one handler run answers for: a whole batch, or a single message. Holds the record of the handler's
 * calls, lets go of what is final at once, and says what is left when the handler has ended.
 */
import * as Acknowledgement from "../Acknowledgement.ts"
import type { Delay } from "../Delay.ts"
import type { Batch, Received } from "../Handler.ts"
import { type Item, ReceivedMessage, toBatch } from "./item.ts"

export interface Unit {
  readonly items: ReadonlyArray<Item>
  /** The messages without a verdict, for the next handler run. */
  readonly view: () => Batch<unknown>
  /** Messages without a verdict. */
  readonly undecided: () => number
  /** No call is heard any more; tells the verdict of every message that was not let go of before. */
  readonly close: (
    outcome: Acknowledgement.Outcome,
    each: (item: Item, verdict: Acknowledgement.Verdict) => void
  ) => void
  /** No call is heard any more; answers what was still undecided, and the verdicts of what was decided. */
  readonly abandon: () => {
    readonly undecided: ReadonlyArray<Item>
    readonly decided: ReadonlyArray<readonly [Item, Acknowledgement.Verdict]>
  }
}

export interface Hooks {
  /** A verdict that nothing can change any more, while the handler still runs. */
  readonly final: (item: Item, verdict: Acknowledgement.Verdict) => void
  readonly ignored: (item: Item | undefined, call: Acknowledgement.Call) => void
}

export const make = (queue: string, items: ReadonlyArray<Item>, longest: Delay, on: Hooks): Unit => {
  let record = Acknowledgement.make(items.length)
  let closed = false
  /** Indices of those that were let go of; most handlers never say a word. */
  let gone: Set<number> | undefined

  const hear = (call: Acknowledgement.Call): void => {
    const before = record
    const after = closed ? before : Acknowledgement.record(before, call)
    if (after === before) {
      if (closed || Acknowledgement.contradicts(before, call))
        on.ignored("index" in call ? items[call.index] : undefined, call)
      return
    }
    record = after
    for (let index = 0; index < items.length; index++) {
      const verdict = after.verdicts[index]
      if (verdict === before.verdicts[index] || gone?.has(index) || !Acknowledgement.isFinal(verdict)) continue
      gone = (gone ?? new Set()).add(index)
      on.final(items[index]!, verdict)
    }
  }

  const messages: ReadonlyArray<Received<unknown>> = items.map(
    (item, index) => new ReceivedMessage(item, index, hear, longest)
  )

  const close: Unit["close"] = (outcome, each) => {
    closed = true
    Acknowledgement.finalise(record, outcome).forEach((verdict, index) => {
      if (gone?.has(index) !== true) each(items[index]!, verdict)
    })
  }

  return {
    items,
    view: () =>
      toBatch(
        queue,
        messages.filter((_, index) => record.verdicts[index] === undefined),
        hear,
        longest
      ),
    undecided: () => record.verdicts.filter((verdict) => verdict === undefined).length,
    close,
    abandon: () => {
      const without = new Set(items.filter((_, index) => record.verdicts[index] === undefined))
      const decided: Array<readonly [Item, Acknowledgement.Verdict]> = []
      close("failure", (item, verdict) => {
        if (!without.has(item)) decided.push([item, verdict])
      })
      return { undecided: [...without], decided }
    }
  }
}
