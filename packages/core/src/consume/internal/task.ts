/**
 * A task: the messages of one run, a batch or a single message. It records the handler's calls. It reports a final verdict
 * at once, and the others when the handler has ended, in the order of the groups.
 */
import * as Acknowledgement from "../../policy/Acknowledgement.ts"
import type * as Bag from "../../runtime/Bag.ts"
import type * as Delay from "../../message/Delay.ts"
import type { Batch, Received } from "../../message/Handler.ts"
import type { Run } from "./runHandler.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import * as Lifecycle from "../Lifecycle.ts"
import { AlreadySettled } from "../Transaction.ts"
import type { Group, Item } from "./item.ts"
import type { Enlist } from "./transactions.ts"
import { ReceivedBatch, ReceivedMessage } from "./received.ts"

export interface Options {
  readonly queue: string
  /** The longest delay that the broker can keep, in milliseconds. */
  readonly longest: Delay.Delay
  /** Called with a final verdict while the handler still runs. */
  readonly onFinal: (item: Item, verdict: Acknowledgement.Verdict) => void
  /** Called for an ignored call, because an earlier one counts; `item` is `undefined` for a call on the whole batch. */
  readonly onIgnored: (item: Item | undefined, call: Acknowledgement.Call) => void
  readonly enlist: Enlist
}

/** The verdicts of messages without a call. */
const uncalled = {
  success: Acknowledgement.finalise(undefined, "success"),
  failure: Acknowledgement.finalise(undefined, "failure")
}

/** The messages of one group in a batch, by index and in order; `next` is the first with an unreported verdict. */
interface GroupMessages {
  readonly indexes: Array<number>
  next: number
}

/** A class, because a run then costs one object and not several closures. */
export class Task implements Bag.Member {
  place = -1
  /** The run of the handler, unless it ended synchronously. */
  run: Run | undefined = undefined
  /** The run for telemetry, if any. */
  watched: Telemetry.Run | undefined = undefined
  readonly items: ReadonlyArray<Item>
  /** Number of earlier runs for these messages. */
  readonly reruns: number
  /** Called when no rerun follows. */
  readonly onEnd: () => void
  readonly #options: Options
  /** By index; `undefined` until the first call, because most handlers make none. */
  #verdicts: Array<Acknowledgement.Verdict | undefined> | undefined = undefined
  /** Indexes of the messages whose verdict was passed to `onFinal`. */
  #reported: Set<number> | undefined = undefined
  /** By group; `undefined` until the first call on a message of a group. */
  #groups: Map<Group, GroupMessages> | undefined = undefined
  isClosed = false
  /** Whether its transaction must roll back because an earlier one has done a message. The run then has no outcome. */
  foundDone = false

  constructor(options: Options, items: ReadonlyArray<Item>, reruns: number, onEnd: () => void) {
    this.#options = options
    this.items = items
    this.reruns = reruns
    this.onEnd = onEnd
  }

  /** Returns the first message, which is the only one for a message handler. */
  toMessage(): Received<unknown> {
    return new ReceivedMessage(this.items[0]!, 0, this, this.#options.longest)
  }

  toBatch(): Batch<unknown> {
    const { longest, queue } = this.#options
    const messages = this.items.map((item, index) => new ReceivedMessage(item, index, this, longest))
    // Frozen: a message that a handler removes from the list would still get the outcome of the run.
    return new ReceivedBatch(queue, Object.freeze(messages), this, longest)
  }

  /** Returns the number of messages without a verdict. */
  undecided(): number {
    return this.items.reduce((sum, _, index) => (this.#isUndecided(index) ? sum + 1 : sum), 0)
  }

  /** Records a call of the handler. The cost of a call on one message does not depend on the batch size. */
  record(call: Acknowledgement.Call): void {
    const { onIgnored } = this.#options
    if (this.isClosed) return onIgnored("index" in call ? this.items[call.index] : undefined, call)
    const verdicts = (this.#verdicts ??= Array.from<undefined>({ length: this.items.length }))
    const reached = "index" in call ? [call.index] : Array.from(this.items.keys())
    const before = reached.map((index) => verdicts[index])
    for (const index of reached) verdicts[index] = Acknowledgement.record(verdicts[index], call)
    if (reached.some((index, n) => verdicts[index] !== before[n])) {
      for (const index of reached) this.#report(index)
    } else if (before.some((verdict) => Acknowledgement.contradicts(verdict, call))) {
      onIgnored("index" in call ? this.items[call.index] : undefined, call)
    }
  }

  within(transaction: unknown, index?: number): Promise<void> {
    const given = index === undefined ? Array.from(this.items.keys()) : [index]
    const reached = index === undefined ? given.filter((each) => this.#verdicts?.[each]?._tag !== "Retry") : given
    const call = index === undefined ? "batch.within" : "message.within"
    for (const each of this.isClosed ? given : reached) {
      const by = this.#settledBy(each)
      const { id } = this.items[each]!.delivery.metadata
      if (by !== undefined) throw new AlreadySettled({ call, queue: this.#options.queue, id, by })
    }
    if (reached.length === 0) return Promise.resolve()
    return this.#options.enlist(
      reached.map((each) => this.items[each]!),
      transaction,
      call,
      () => (this.foundDone = true)
    )
  }

  #settledBy(index: number): AlreadySettled["by"] | undefined {
    if (this.isClosed) return "late"
    if (this.#isEnlisted(index)) return "enlisted"
    return this.#isUndecided(index) ? undefined : "settled"
  }

  /**
   * Reports the verdicts that are final after a call on this message, unless a transaction acks it. In a group, everything from the first message that is
   * not acked waits for the end of the run.
   */
  #report(index: number): void {
    const { group } = this.items[index]!
    if (group === undefined) {
      if (Acknowledgement.isFinal(this.#verdicts![index]) && !this.#isEnlisted(index)) this.#reportFinal(index)
      return
    }
    this.#groups ??= byGroup(this.items)
    const messages = this.#groups.get(group)!
    for (; messages.next < messages.indexes.length; messages.next++) {
      const next = messages.indexes[messages.next]!
      if (this.#verdicts![next]?._tag !== "Ack" || this.#isEnlisted(next)) return
      this.#reportFinal(next)
    }
  }

  #reportFinal(index: number): void {
    if (this.isReported(index)) return
    this.#reported = (this.#reported ?? new Set()).add(index)
    this.#options.onFinal(this.items[index]!, this.#verdicts![index]!)
  }

  /** Ignores all later calls. */
  close(): void {
    this.isClosed = true
  }

  /** Whether `onFinal` was given the verdicts of all messages. */
  isSettled(): boolean {
    return this.#reported?.size === this.items.length
  }

  /** Whether the verdict of a message was passed to `onFinal`. */
  isReported(index: number): boolean {
    return this.#reported?.has(index) === true
  }

  /**
   * Returns the verdict of a message by the outcome of its run; `undefined` for a message without a call in an interrupted
   * run, which has no outcome.
   */
  verdict(index: number, outcome: Acknowledgement.Outcome | undefined): Acknowledgement.Verdict | undefined {
    const verdict = this.#verdicts?.[index]
    if (verdict === undefined) return outcome && uncalled[outcome]
    return Acknowledgement.finalise(verdict, outcome ?? "failure")
  }

  #isEnlisted(index: number): boolean {
    return Lifecycle.isEnlisted(this.items[index]!)
  }

  #isUndecided(index: number): boolean {
    return this.#verdicts?.[index] === undefined
  }
}

const byGroup = (items: ReadonlyArray<Item>): Map<Group, GroupMessages> => {
  const groups = new Map<Group, GroupMessages>()
  for (const [index, { group }] of items.entries()) {
    const messages = group && groups.get(group)
    if (messages !== undefined) messages.indexes.push(index)
    else if (group !== undefined) groups.set(group, { indexes: [index], next: 0 })
  }
  return groups
}
