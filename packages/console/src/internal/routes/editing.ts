/** A copy of a letter is edited, seen with its differences, and redriven. Each step is a form. */
import { AuditLine } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Audit from "../../Audit.ts"
import { editor, preview } from "../pages/edit.ts"
import { Refusal } from "../refusal.ts"
import { queryOf, type Visit } from "../visit.ts"
import * as Body from "../work/body.ts"
import * as Drafts from "../work/drafts.ts"
import * as Edit from "../work/edit.ts"
import { begin, targetOf } from "./acting.ts"
import { wrong } from "./fields.ts"
import { found } from "./reading.ts"
import { type Dependencies, placeOf, type Route } from "./route.ts"

const both = ({ may }: Visit): Effect.Effect<void, Refusal> =>
  may.has("bodies")
    ? Effect.void
    : Effect.fail(
        new Refusal({ status: 403, detail: "whoever edits a letter sees its body", remedy: "Ask somebody who may" })
      )

/** Those who edit the letter of a draft as well, and the jobs that have redriven an edited copy of it. */
const otherwise = ({ drafts, jobs }: Dependencies, draft: Drafts.Draft) => {
  const { key, opened, operator, place } = draft
  const edits = jobs
    .all()
    .filter(
      (job) =>
        job.kind === "edit" &&
        job.selection.letter === key &&
        job.place.broker === place.broker &&
        job.place.queue === place.queue
    )
  return {
    editors: drafts.others(draft).filter((other) => other.operator !== operator),
    edits,
    since: edits.find(({ begun }) => begun >= opened)
  }
}

/** Begins an edit: the letter is looked for, and its body shown. */
export const editRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      yield* both(visit)
      const { connection, place } = yield* placeOf(fields, dependencies)
      const { broker, queue } = place
      const asked = fields.get("letter")
      const kept = found(dependencies, place, fields.get("cause") ?? "")?.letters.find(({ key }) => key === asked)
      // Without a look of now, nobody knows its id, which the audit names.
      if (kept === undefined) return { to: visit.paths.to("deadLetters", queryOf(place)) }
      const operation: Audit.Operation = {
        id: AuditLine.newId(),
        command: "console body",
        operator: visit.operator,
        broker,
        queues: [queue],
        options: { letter: kept.id, edit: true }
      }
      const search = Body.search(connection, queue, kept.key, dependencies.turns({ broker, queue }))
      const letter = yield* Audit.around(dependencies.audit, operation)(search)
      const begun = yield* Effect.try({
        try: () => Drafts.begin(letter, dependencies.redact, { now: visit.now, operator: visit.operator, place }),
        catch: () => Body.hookFailed
      })
      if (typeof begun === "string") {
        const remedy = "Nothing was changed. In a program, deadLetters.edit takes any bytes"
        return yield* new Refusal({ status: 409, detail: `it cannot be edited here: ${begun}`, remedy })
      }
      dependencies.drafts.add(begun)
      const targets = connection.queues.map(({ name }) => name)
      return { page: editor(visit, begun, { targets, ...otherwise(dependencies, begun) }) }
    })
}

/** The draft of an operator that the fields name. */
const draftOf = (fields: URLSearchParams, { operator }: Visit, { drafts }: Dependencies) => {
  const draft = drafts.of(fields.get("draft") ?? "")
  return draft !== undefined && draft.operator === operator
    ? Effect.succeed(draft)
    : Effect.fail(
        new Refusal({ status: 409, detail: "this draft is not here any more", remedy: "Open the letter, and edit it" })
      )
}

/** Shows how a copy differs from its letter. */
export const previewRoute: Route = {
  method: "POST",
  needs: "redrive",
  formLimit: Drafts.formLimit,
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      yield* both(visit)
      const draft = yield* draftOf(fields, visit, dependencies)
      const connection = dependencies.connections.get(draft.place.broker)!
      const to = yield* targetOf(fields, connection)
      if (to === undefined && draft.letter.origin === undefined) {
        return yield* wrong("nobody knows the queue that the letter came from", "Go back, and choose a queue")
      }
      const written = Drafts.write(draft, fields.get("headers") ?? "", fields.get("body") ?? "")
      if (typeof written === "string") return yield* wrong(written, "Nothing was done. Go back, and change it")
      dependencies.drafts.add(written)
      return { page: preview(visit, written, { to, ...otherwise(dependencies, written) }) }
    })
}

/** Redrives the copy that was seen. */
export const sendRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      yield* both(visit)
      const draft = yield* draftOf(fields, visit, dependencies)
      const connection = dependencies.connections.get(draft.place.broker)!
      const to = yield* targetOf(fields, connection)
      const { since } = otherwise(dependencies, draft)
      if (since !== undefined) {
        const detail = `job ${since.id} of ${since.operator} has redriven an edited copy of this letter meanwhile`
        return yield* new Refusal({ status: 409, detail, remedy: "Nothing was done. See what became of it" })
      }
      if (draft.copy === undefined || fields.get("copy") !== Drafts.nameOf(draft)) {
        return yield* new Refusal({
          status: 409,
          detail: "the copy is not the one that was seen",
          remedy: "Nothing was done. See the difference again"
        })
      }
      return yield* begin({ visit }, dependencies, draft.place, Edit.make(connection, draft, to))
    })
}
