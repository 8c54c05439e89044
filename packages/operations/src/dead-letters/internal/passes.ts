/** The passes of a redrive through its queue: each publishes some of the letters that waited when the redrive began. */
import { Broker, type BrokerError, type Delivery } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as SweepStats from "./sweepStats.ts"
import type * as ComeBacks from "./returned.ts"
import * as Destination from "./destination.ts"
import type * as Ledger from "./ledger.ts"
import * as Operation from "./operation.ts"
import { keyOf } from "./seen.ts"
import type * as Stages from "./stages.ts"
import * as Sweep from "./sweep.ts"
import type * as Watch from "./watch.ts"

/** The options of a redrive that its passes have. */
interface Options extends Sweep.Options, Omit<Destination.Options, "queue"> {
  readonly dryRun?: boolean | undefined
  readonly maxRedrives?: number | undefined
}

const target = (letter: Delivery.Delivery, { to }: Options): string | undefined =>
  to ?? letter.metadata.deadLetter?.queue

export interface Dependencies {
  /** When the redrive began, in milliseconds since the epoch. */
  readonly begun: number
  readonly broker: Broker.Service
  readonly queue: string
  readonly options: Options
  readonly operation: Operation.Operation
  readonly comeBacks: ComeBacks.Returned | undefined
  readonly watch: Watch.Watch | undefined
  readonly ledger: Ledger.Ledger
  /** Whether letters are moved unchanged, and not redriven. */
  readonly isParking: boolean
  /** Whether the filter selects the letter. */
  readonly isMeant: (letter: Delivery.Delivery) => boolean
  readonly publish: Broker.Service["publish"]
  readonly onProgress: () => void
}

/** Returns why the dead letter is passed over; `undefined` if it is selected. */
const obstacle = (
  letter: Delivery.Delivery,
  { isMeant, isParking, operation, options }: Dependencies
): Ledger.PassedOver | undefined => {
  if (!isParking && Operation.isOf(letter.metadata.operation, operation)) return "repeated"
  if (!isMeant(letter)) return "filtered"
  if (isParking) return undefined
  if (letter.metadata.redrives >= (options.maxRedrives ?? 3)) return "overRedriveLimit"
  return target(letter, options) === undefined ? "unknownOrigin" : undefined
}

/** The letters of a dry run that would go to the same queue. */
interface Wanted {
  readonly letters: number
  /** The ids of the first of these letters. */
  readonly ids: ReadonlyArray<string>
}

const plus = ({ ids, letters }: Wanted, { metadata }: Delivery.Delivery): Wanted => ({
  letters: letters + 1,
  ids: ids.length < SweepStats.failuresLimit ? [...ids, metadata.id] : ids
})

/** Refuses the letters of a dry run whose queue a redrive would refuse. */
const refuse = (
  summary: SweepStats.Summary,
  wanted: ReadonlyMap<string, Wanted>,
  enter: (queue: string) => Effect.Effect<void, BrokerError.BrokerError>
) =>
  Effect.gen(function* () {
    let refused = 0
    const failures: Array<SweepStats.FailedLetter> = []
    for (const [to, { ids, letters }] of wanted) {
      const entered = yield* Effect.result(Effect.retry(enter(to), { times: Destination.tries - 1 }))
      if (Result.isSuccess(entered) || Broker.fateOf(entered.failure) !== "rejected") continue
      refused += letters
      const left = SweepStats.failuresLimit - failures.length
      failures.push(...ids.slice(0, left).map((id) => ({ id, isPublished: false, error: entered.failure })))
    }
    return { ...summary, selected: summary.selected - refused, refused: summary.refused + refused, failures }
  })

/** The passes of a redrive through its queue. */
export const make = (dependencies: Dependencies) => {
  const { begun, broker, comeBacks, isParking, ledger, onProgress, operation, options, publish, queue, watch } =
    dependencies
  const { enter, targets } = Destination.gate(broker, { ...options, queue }, watch?.add)
  /** Letters that earlier passes left here, and that must not be published again. */
  const done = new Set<string>()
  let hasBegun = false
  /** The number of letters that were here at the beginning and still are, including those of other readers. */
  let known: number | undefined

  const copy = (letter: Delivery.Delivery, published: Set<string>) => {
    const to = target(letter, options)!
    const outgoing = isParking
      ? Outgoing.move(letter, to)
      : Outgoing.redrive(letter, to, Operation.tag(operation, ledger.stage()))
    const copied = Effect.andThen(enter(to), publish([Destination.bound(outgoing, options)]))
    // Without watching, there is only one pass.
    if (comeBacks === undefined) return copied
    const key = keyOf(letter.metadata)
    return copied.pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          published.add(key)
          watch?.published(letter, outgoing)
        })
      ),
      Effect.tapError((error) => Effect.sync(() => Broker.fateOf(error) === "rejected" && done.add(key)))
    )
  }

  const select = (letter: Delivery.Delivery): boolean => {
    comeBacks?.see(letter.metadata)
    if (done.has(keyOf(letter.metadata))) return false
    const why = obstacle(letter, dependencies)
    if (why !== undefined) ledger.passOver(why)
    return why === undefined
  }

  const isNew = (letter: Delivery.Delivery): boolean => {
    comeBacks?.see(letter.metadata)
    return (letter.metadata.deadLetter?.at ?? Number.NEGATIVE_INFINITY) > begun
  }

  const pass: Stages.Pass = (limit) =>
    Effect.gen(function* () {
      ledger.pass()
      const published = new Set<string>()
      const wanted = new Map<string, Wanted>()
      const count = (letter: Delivery.Delivery): boolean => {
        const isSelected = select(letter)
        const to = target(letter, options)
        if (isSelected && to !== undefined) wanted.set(to, plus(wanted.get(to) ?? { letters: 0, ids: [] }, letter))
        return isSelected
      }
      const work: Sweep.Work = {
        select: options.dryRun === true ? count : select,
        isNew,
        copy: options.dryRun === true ? "look" : (letter) => copy(letter, published),
        onStep: (current) => {
          ledger.step(current())
          onProgress()
        }
      }
      const { error, summary: swept } = yield* Sweep.run(broker, queue, { ...options, limit, known }, work)
      const summary = options.dryRun === true ? yield* refuse(swept, wanted, enter) : swept
      hasBegun = true
      const { held = 0, queued, removed } = summary
      if (known !== undefined) known -= removed
      else if (queued !== undefined) known = queued + held
      const away = Math.min(held, Math.max(0, (known ?? 0) - (queued ?? 0)))
      ledger.step(summary)
      if (summary.unremoved > 0) for (const key of published) done.add(key)
      return error === undefined ? { ...summary, held: away } : yield* error
    })

  return { pass, targets, hasBegun: () => hasBegun }
}
