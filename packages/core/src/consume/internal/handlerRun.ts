/**
 * Messages that one handler run answers for: a whole batch, or a single message. Holds the record of the handler's
 * calls, lets go of what is final at once, and says what is left when the handler has ended.
 */
import * as Acknowledgement from "../../policy/Acknowledgement.ts"
import type * as Bag from "../../adapter-kit/Bag.ts"
import type { Delay } from "../../message/Delay.ts"
import type { Batch, Received } from "../../message/Handler.ts"
import type { Run } from "./dispatch.ts"
import { type Item, ReceivedMessage, toBatch } from "./item.ts"

export interface Hooks {
  /** A verdict that nothing can change any more, while the handler still runs. */
  readonly final: (item: Item, verdict: Acknowledgement.Verdict) => void
  readonly ignored: (item: Item | undefined, call: Acknowledgement.Call) => void
}

/** What all units of a consumer share. */
export interface Setting {
  readonly queue: string
  /** The longest delay that the broker can honour. */
  readonly longest: Delay
  readonly on: Hooks
}

/** A class, so that a message costs one object and not a handful of closures. */
export class Unit implements Bag.Member {
  place = -1
  /** While its handler runs. */
  run: Run | undefined = undefined
  readonly items: ReadonlyArray<Item>
  readonly #setting: Setting
  readonly #messages: ReadonlyArray<Received<unknown>>
  /** `undefined` until the first call: most handlers never say a word. */
  #record: Acknowledgement.State | undefined = undefined
  /** Those that were let go of, by index. */
  #gone: Set<number> | undefined = undefined
  #closed = false

  constructor(setting: Setting, items: ReadonlyArray<Item>) {
    this.items = items
    this.#setting = setting
    this.#messages = items.map((item, index) => new ReceivedMessage(item, index, this, setting.longest))
  }

  /** The only message of a unit that has one. */
  get message(): Received<unknown> {
    return this.#messages[0]!
  }

  /** The messages without a verdict, for the next handler run. */
  view(): Batch<unknown> {
    const { longest, queue } = this.#setting
    const open = this.#messages.filter((_, index) => this.#isUndecided(index))
    return toBatch(queue, open, this, longest)
  }

  /** Messages without a verdict. */
  undecided(): number {
    return this.items.reduce((sum, _, index) => (this.#isUndecided(index) ? sum + 1 : sum), 0)
  }

  /** Takes a call of the handler. */
  hear(call: Acknowledgement.Call): void {
    const { on } = this.#setting
    const before = this.#record ?? Acknowledgement.make(this.items.length)
    const after = this.#closed ? before : Acknowledgement.record(before, call)
    if (after === before) {
      if (this.#closed || Acknowledgement.contradicts(before, call))
        on.ignored("index" in call ? this.items[call.index] : undefined, call)
      return
    }
    this.#record = after
    for (let index = 0; index < this.items.length; index++) {
      const verdict = after.verdicts[index]
      const isNews = verdict !== before.verdicts[index] && this.#gone?.has(index) !== true
      if (!isNews || !Acknowledgement.isFinal(verdict)) continue
      this.#gone = (this.#gone ?? new Set()).add(index)
      on.final(this.items[index]!, verdict)
    }
  }

  /** No call is heard any more; tells the verdict of every message that was not let go of before. */
  close(outcome: Acknowledgement.Outcome, each: (item: Item, verdict: Acknowledgement.Verdict) => void): void {
    this.#closed = true
    const verdicts = this.#record && Acknowledgement.finalise(this.#record, outcome)
    for (let index = 0; index < this.items.length; index++) {
      if (this.#gone?.has(index) === true) continue
      each(this.items[index]!, verdicts?.[index] ?? Acknowledgement.byOutcome(outcome))
    }
  }

  /** No call is heard any more; answers what was still undecided, and the verdicts of what was decided. */
  abandon(): {
    readonly undecided: ReadonlyArray<Item>
    readonly decided: ReadonlyArray<readonly [Item, Acknowledgement.Verdict]>
  } {
    const without = new Set(this.items.filter((_, index) => this.#isUndecided(index)))
    const decided: Array<readonly [Item, Acknowledgement.Verdict]> = []
    this.close("failure", (item, verdict) => {
      if (!without.has(item)) decided.push([item, verdict])
    })
    return { undecided: [...without], decided }
  }

  #isUndecided(index: number): boolean {
    return this.#record?.verdicts[index] === undefined
  }
}
