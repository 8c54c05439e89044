/** The deeds of operators. Each of these is a form of a page, and has its lines in the audit. */
import * as Effect from "effect/Effect"
import * as Audit from "../../Audit.ts"
import { titleOf } from "../pages/deadLetters.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import * as Shown from "../shown.ts"
import { jobQuery, queryOf, type Visit } from "../visit.ts"
import * as Alone from "../work/alone.ts"
import * as CauseId from "../work/causeId.ts"
import type { Connection } from "../work/connections.ts"
import { type Job, roleOf, type Work } from "../work/job.ts"
import * as Park from "../work/park.ts"
import * as Purge from "../work/purge.ts"
import * as Redrive from "../work/redrive.ts"
import * as Selection from "../work/selection.ts"
import { numberOf, wrong } from "./fields.ts"
import { jobOf } from "./reading.ts"
import { type Asking, type Dependencies, type Located, placeOf, type Route } from "./route.ts"

/** The letters of an earlier job, unless the fields mean others. */
const selectedBefore = (
  fields: URLSearchParams,
  job: Job | undefined,
  place: Place
): Effect.Effect<Selection.Selection, Refusal> => {
  const { cause, letter } = job?.selection ?? {}
  const given = [queryOf(place), fields.get("cause") ?? cause, fields.get("letter") ?? letter]
  return job !== undefined && JSON.stringify(given) === JSON.stringify([queryOf(job.place), cause, letter])
    ? Effect.succeed(job.selection)
    : Effect.fail(
        new Refusal({ status: 409, detail: "no job has these letters", remedy: "Nothing was done. Look again" })
      )
}

/** The letters that the fields mean. */
export const selectionOf = (
  { fields, visit }: Asking,
  { jobs, looks, redact }: Dependencies,
  { filter, place }: Located
): Effect.Effect<Selection.Selection, Refusal> => {
  const again = fields.get("again")
  if (again !== null) return selectedBefore(fields, jobs.of(again), place)
  const [cause, letter] = [fields.get("cause") ?? undefined, fields.get("letter") ?? undefined]
  if (cause !== undefined && !/^[\da-f]{16}$/.test(cause)) {
    return Effect.fail(wrong("there is no such cause", "Nothing was done. Look again"))
  }
  const group = looks.of(place)?.groups.find((each) => CauseId.of(each) === cause)
  const kept =
    group &&
    looks
      .of(place)
      ?.letters.of(group)
      .find(({ key }) => key === letter)
  if (letter !== undefined && kept === undefined) {
    return Effect.fail(new Refusal({ status: 404, detail: "there is no such letter", remedy: "Look again" }))
  }
  const one = kept && Shown.letter(redact, kept, place, false)
  return Effect.succeed({
    cause,
    letter,
    search: place.filter === undefined ? {} : { filter: place.filter },
    filter,
    title: Selection.titleOf({
      cause: group === undefined ? cause : titleOf(visit.shown(group, place)),
      id: one?.id,
      filter
    }),
    isMeant: Selection.all(
      cause === undefined ? undefined : Selection.ofCause(cause),
      letter === undefined ? undefined : Selection.withKey(letter),
      filter === undefined ? undefined : Selection.filtering(filter, visit.now, redact, place)
    )
  })
}

/** Begins a job, and leads to its page. A look of before is no longer true when it has changed something. */
export const begin = (
  { visit: { operator, paths } }: { readonly visit: Visit },
  { jobs, looks, turns }: Dependencies,
  place: Place,
  work: Work
) => {
  const alone = Alone.make({ looks, turns }, operator, work)
  const forgetting: Work = {
    ...alone,
    run: (...args) =>
      Effect.ensuring(
        alone.run(...args),
        Effect.sync(() => looks.forget(place))
      )
  }
  return Effect.map(jobs.begin(work.kind === "plan" ? alone : forgetting, operator), (job) => ({
    to: paths.to("job", jobQuery(job))
  }))
}

interface Selected {
  readonly place: Place
  readonly selection: Selection.Selection
}

const working =
  (make: (asking: Asking, connection: Connection, selected: Selected) => Effect.Effect<Work, Refusal>) =>
  (asking: Asking, dependencies: Dependencies) =>
    Effect.gen(function* () {
      const located = yield* placeOf(asking.fields, dependencies)
      const { connection, place } = located
      const selection = yield* selectionOf(asking, dependencies, located)
      return yield* begin(asking, dependencies, place, yield* make(asking, connection, { place, selection }))
    })

/** Counts what a redrive would do. */
export const planRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: working(({ fields }, connection, { place, selection }) =>
    Effect.map(targetOf(fields, connection), (to) => Redrive.plan(connection, place.queue, selection, to))
  )
}

/** The queue that letters are to go to: one that is configured; `undefined` for those that they came from. */
export const targetOf = (fields: URLSearchParams, { name, queues }: Connection) => {
  const to = fields.get("to") ?? ""
  if (to === "") return Effect.undefined
  return queues.some((queue) => queue.name === to)
    ? Effect.succeed(to)
    : Effect.fail(wrong(`${name} has no queue ${to} that is configured`, "Nothing was done. Choose one"))
}

/** The dry run that a form is from: one of the same letters, which has ended well. */
const planOf = ({ jobs }: Dependencies, id: string, { place, selection }: Selected) => {
  const job = jobs.of(id)
  return job?.kind === "plan" &&
    job.ended !== undefined &&
    job.trouble === undefined &&
    (job.report?.redriven ?? 0) > 0 &&
    job.place.broker === place.broker &&
    job.place.queue === place.queue &&
    Selection.isSame(job.selection, selection)
    ? Effect.succeed(job)
    : Effect.fail(
        new Refusal({
          status: 409,
          detail: "nobody has counted these letters",
          remedy: "Nothing was done. Count first"
        })
      )
}

/** Redrives what a dry run has counted. */
export const redriveRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: (asking, dependencies) =>
    working(({ fields }, connection, selected) =>
      Effect.gen(function* () {
        const plan = yield* planOf(dependencies, fields.get("plan") ?? "", selected)
        const how = fields.get("how")
        if (how !== "stages" && how !== "at-once") {
          return yield* wrong("how must be stages or at-once", "Nothing was done")
        }
        const rate = yield* numberOf(fields, "rate", "decimal", 0.001, 100_000)
        return Redrive.redrive(connection, selected.place.queue, { plan, isStaged: how === "stages", rate })
      })
    )(asking, dependencies)
}

/** Removes letters of a queue for good, those of a cause or all, when its name has been typed. */
export const purgeRoute: Route = {
  method: "POST",
  needs: "purge",
  answer: working(({ fields }, connection, { place: { queue }, selection }) =>
    selection.letter === undefined && fields.get("name") === queue
      ? Effect.succeed(Purge.make(connection, queue, selection))
      : Effect.fail(wrong(`the name that was typed is not ${queue}, or one letter is meant`, "Nothing was removed"))
  )
}

/** Moves letters of a dead-letter queue aside, or back. */
export const parkRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: working((_, connection, { place: { queue }, selection }) =>
    Effect.succeed(Park.make(connection, queue, selection))
  )
}

/** Stops a job. Whoever may begin it may stop it. */
export const stopRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      const job = yield* jobOf(fields, dependencies)
      const needs = roleOf[job.kind]
      if (!visit.may.has(needs)) {
        const detail = `a ${job.kind} is stopped by the role ${needs}`
        return yield* new Refusal({ status: 403, detail, remedy: "It goes on. Ask somebody who has it" })
      }
      const operation: Audit.Operation = {
        id: job.id,
        command: "console stop",
        operator: visit.operator,
        broker: job.place.broker,
        queues: [job.place.queue],
        options: {}
      }
      // What stops is never held up: an audit that fails is told afterwards.
      dependencies.jobs.stop(job.id)
      yield* Effect.mapError(
        Audit.around(dependencies.audit, operation)(Effect.void),
        ({ detail, status }) =>
          new Refusal({ status, detail: `the job stops, but ${detail}`, remedy: "Mend the audit" })
      )
      return { to: visit.paths.to("job", jobQuery(job)) }
    })
}
