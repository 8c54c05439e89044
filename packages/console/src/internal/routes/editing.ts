/** Editing a copy of a letter: edit it, see its differences, redrive it. Each step is a form. */
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
import { orAgain, wrong } from "./fields.ts"
import { found } from "./reading.ts"
import { type Dependencies, placeOf, type Route } from "./route.ts"

const both = ({ may }: Visit): Effect.Effect<void, Refusal> =>
  may.has("bodies")
    ? Effect.void
    : Effect.fail(
        new Refusal({
          status: 403,
          detail: "only the role bodies can edit a letter",
          remedy: "Ask an operator with that role"
        })
      )

/** Returns other drafts of the same letter, and the jobs that have redriven an edited copy of it. */
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

/** Begins an edit: finds the letter and shows its body. */
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
      // The audit names the id of the letter, which only a browse has.
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
        const remedy = "Nothing was changed. In a program, deadLetters.edit accepts any bytes"
        return yield* new Refusal({ status: 409, detail: `the console cannot edit this letter: ${begun}`, remedy })
      }
      dependencies.drafts.add(begun)
      const targets = connection.queues.map(({ name }) => name)
      return { page: editor(visit, begun, { targets, ...otherwise(dependencies, begun) }) }
    })
}

/** Returns the operator's draft that the fields name. */
const draftOf = (fields: URLSearchParams, { operator }: Visit, { drafts }: Dependencies) => {
  const draft = drafts.of(fields.get("draft") ?? "")
  return draft !== undefined && draft.operator === operator
    ? Effect.succeed(draft)
    : Effect.fail(
        new Refusal({
          status: 409,
          detail: "the console has forgotten this draft",
          remedy: "Open the letter and edit it again"
        })
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
      const shown = Effect.gen(function* () {
        const to = yield* targetOf(fields, connection)
        if (to === undefined && draft.letter.origin === undefined) {
          return yield* wrong("the letter does not name the queue that it came from", "Choose a queue", "to")
        }
        const written = Drafts.write(draft, fields.get("headers") ?? "", fields.get("body") ?? "")
        if (typeof written === "string") return yield* wrong(written, "Nothing was done. Go back and change it", "body")
        dependencies.drafts.add(written)
        return { page: preview(visit, written, { to, ...otherwise(dependencies, written) }) }
      })
      const targets = connection.queues.map(({ name }) => name)
      return yield* orAgain(shown, fields, (problem) =>
        editor(visit, draft, { targets, ...otherwise(dependencies, draft) }, problem)
      )
    })
}

/** Redrives the copy that the operator has seen. */
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
        return yield* new Refusal({ status: 409, detail, remedy: "Nothing was done", job: since.id })
      }
      if (draft.copy === undefined || fields.get("copy") !== Drafts.nameOf(draft)) {
        return yield* new Refusal({
          status: 409,
          detail: "the copy has changed since its difference was shown",
          remedy: "Nothing was done. Look at the difference again"
        })
      }
      return yield* begin({ visit }, dependencies, draft.place, Edit.make(connection, draft, to))
    })
}
