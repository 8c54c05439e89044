/** `requeue dead-letters redrive --edit`: opens one letter in an editor, publishes the copy, and waits for its outcome. */
import { DeadLetters, LetterDraft } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Audit from "../../Audit.ts"
import * as Confirmation from "../../Confirmation.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as Editor from "../../Editor.ts"
import * as Interruption from "../../Interruption.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import { Output } from "../../Output.ts"
import { Problem } from "../../Problem.ts"
import * as Printable from "../../Printable.ts"
import * as RedriveStages from "../../RedriveStages.ts"
import * as Target from "../../Target.ts"
import { UsageError } from "../../UsageError.ts"

/** The arguments of an edit. */
export interface Asked {
  readonly broker: string
  readonly to: Option.Option<string>
  /** Whether the queue of `to` may be created. */
  readonly create: boolean
  readonly yes: boolean
  readonly isMeant: (letter: LetterFilter.Subject) => boolean
  readonly filters: LetterFilter.Filter
  readonly audit: Audit.Flags
  readonly options: Pick<DeadLetters.EditOptions, "wait" | "watch"> & { readonly operation: string }
}

interface Found {
  readonly dead: DeadLetters.DeadLetters
  readonly letter: DeadLetters.DeadLetter
}

/** Finds the only letter that matches. */
const find = (all: ReadonlyArray<DeadLetters.DeadLetters>, { isMeant }: Asked) =>
  Effect.gen(function* () {
    const found = yield* Effect.forEach(all, (dead) =>
      Effect.map(dead.list({ limit: 2, filter: isMeant }), (letters) =>
        letters.map((letter): Found => ({ dead, letter }))
      )
    )
    const [first, ...others] = found.flat()
    if (first !== undefined && others.length === 0) return first
    return yield* new UsageError({
      detail: `--edit: ${first === undefined ? "no letter matches" : "several letters match"}`,
      remedy:
        first === undefined
          ? "requeue dead-letters list shows all letters"
          : "Give --id and --dlq, or --older-than, to select one of them"
    })
  })

const draftOf = ({ dead: { queue }, letter }: Found) =>
  Effect.gen(function* () {
    const obstacle = LetterDraft.obstacle(letter)
    if (obstacle !== undefined) {
      const remedy = "Nothing was changed. Edit the letter in a program, with deadLetters.edit"
      return yield* new UsageError({ detail: `--edit: ${letter.id}: ${obstacle}`, remedy })
    }
    const edited = yield* Editor.edit(LetterDraft.write(letter, `The dead letter ${letter.id} of ${queue}.`))
    const draft = LetterDraft.read(edited.text, letter)
    if (typeof draft === "object" && "problem" in draft) {
      const remedy = `Nothing was changed. What you wrote is in ${edited.file}`
      return yield* new UsageError({ detail: `--edit: ${draft.problem}`, remedy })
    }
    yield* Editor.remove(edited.file)
    return draft === "unchanged" ? undefined : draft
  })

const words: { readonly [Outcome in DeadLetters.EditOutcome]: string } = {
  succeeded: "the copy has succeeded",
  "came-back": "the copy came back, and is a dead letter as well",
  waiting: "the copy is still ready, delayed or in flight",
  unknown: "the copy is published, and the broker does not report its outcome",
  missing: "it no longer exists, and nothing was published"
}

const text = ({ dead: { queue }, letter }: Found, { isRemoved, outcome }: DeadLetters.EditReport): string => {
  const rest = outcome === "missing" ? "" : isRemoved ? "; the original is removed" : "; the original is kept"
  return `${queue}: ${Printable.line(letter.id)}: ${words[outcome]}${rest}`
}

/**
 * Edits the matching letter. The command reports a problem if the broker reports outcomes, and the copy is not known to
 * have succeeded.
 */
export const edit = (target: DeadLetterTarget.DeadLetterTarget, asked: Asked) =>
  Effect.provide(editing(target, asked), Target.layer(target))

const editing = (target: DeadLetterTarget.DeadLetterTarget, asked: Asked) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const all = yield* DeadLetterTarget.open(target)
    yield* DeadLetterTarget.destination(target, Option.getOrUndefined(asked.to), asked.create)
    const found = yield* find(all, asked)
    const { dead, letter } = found
    if (letter.origin === undefined && Option.isNone(asked.to)) {
      return yield* new UsageError({
        detail: `--edit: the queue that ${letter.id} came from is unknown`,
        remedy: "Give a queue with --to"
      })
    }
    const draft = yield* draftOf(found)
    if (draft !== undefined) yield* RedriveStages.tellUntold
    const queue = Option.getOrElse(asked.to, () => letter.origin?.queue ?? "")
    const isSure = draft !== undefined && (asked.yes || (yield* Confirmation.ask(`Publish the copy to ${queue}?`)))
    if (!isSure) return yield* result({ broker: asked.broker, edited: null }, () => "nothing was changed")
    let report: DeadLetters.EditReport | undefined
    const told = () => (report === undefined ? [] : [{ queue: dead.queue, id: letter.id, ...report }])
    const operation: Audit.Operation = {
      id: asked.options.operation,
      command: "dead-letters redrive --edit",
      broker: asked.broker,
      queues: [dead.queue],
      filters: asked.filters,
      options: { to: queue }
    }
    const audit = yield* Audit.ofLetters(asked.audit, operation, { to: queue })
    const published = Interruption.gently(
      (signal) =>
        dead.edit(letter, {
          ...draft,
          ...asked.options,
          ...target.forced(dead.queue),
          to: Option.getOrUndefined(asked.to),
          create: asked.create,
          audit: audit(dead.queue),
          signal
        }),
      (ended) =>
        Effect.suspend(() => {
          report = ended
          return Interruption.tell(
            () => ({ broker: asked.broker, edited: told()[0] }),
            () => text(found, ended)
          )
        })
    )
    const ended = yield* published.pipe(
      Effect.tap((done) => Effect.sync(() => (report = done))),
      Audit.around(asked.audit, operation, () => ({ outcome: report?.outcome ?? "failed", queues: told() }))
    )
    yield* result({ broker: asked.broker, edited: told()[0] }, () => text(found, ended))
    if (ended.outcome !== "succeeded" && ended.outcome !== "unknown") return yield* new Problem()
  })
