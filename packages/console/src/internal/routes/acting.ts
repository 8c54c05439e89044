/** The actions of operators. Each action has a form on a page, and lines in the audit. */
import * as Effect from "effect/Effect"
import * as Audit from "../../Audit.ts"
import { titleOf } from "../pages/deadLetters.ts"
import { job } from "../pages/jobs.ts"
import { purgeAgain } from "../pages/letterForms.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import * as Shown from "../shown.ts"
import { jobQuery, queryOf, type Visit } from "../visit.ts"
import * as Alone from "../work/alone.ts"
import * as CauseId from "../work/causeId.ts"
import type { Connection } from "../work/connections.ts"
import { type Job, roleOf, type Staged, type Work } from "../work/job.ts"
import * as Park from "../work/park.ts"
import * as Purge from "../work/purge.ts"
import * as Redrive from "../work/redrive.ts"
import * as Selection from "../work/selection.ts"
import { numberOf, orAgain, wrong, wrongName } from "./fields.ts"
import { jobOf } from "./reading.ts"
import { type Asking, type Dependencies, type Located, placeOf, type Route } from "./route.ts"

/** Returns the letters of an earlier job. Fails if the fields select other letters. */
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
        new Refusal({ status: 409, detail: "no job has these letters", remedy: "Nothing was done. Browse again" })
      )
}

/** Returns the letters that the fields select. */
export const selectionOf = (
  { fields, visit }: Asking,
  { jobs, looks, redact }: Dependencies,
  { filter, place }: Located
): Effect.Effect<Selection.Selection, Refusal> => {
  const again = fields.get("again")
  if (again !== null) return selectedBefore(fields, jobs.of(again), place)
  const [cause, letter] = [fields.get("cause") ?? undefined, fields.get("letter") ?? undefined]
  if (cause !== undefined && !/^[\da-f]{16}$/.test(cause)) {
    return Effect.fail(wrong("there is no such cause", "Nothing was done. Browse again"))
  }
  const group = looks.of(place)?.groups.find((each) => CauseId.of(each) === cause)
  const kept =
    group &&
    looks
      .of(place)
      ?.letters.of(group)
      .find(({ key }) => key === letter)
  if (letter !== undefined && kept === undefined) {
    return Effect.fail(new Refusal({ status: 404, detail: "there is no such letter", remedy: "Browse again" }))
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

/** Begins a job, and redirects to the job's page. Browses of a queue that the job changes become out of date. */
export const begin = (
  { visit: { operator, paths } }: { readonly visit: Visit },
  { jobs, looks, turns }: Dependencies,
  place: Place,
  work: Work
) => {
  const alone = Alone.make({ looks, turns }, operator, work)
  const forgetting: Work = {
    ...alone,
    run: (job) =>
      Effect.ensuring(
        alone.run(job),
        Effect.sync(() => looks.forget(place, job.id))
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
  answer: (asking, dependencies) =>
    working(({ fields }, connection, { place, selection }) =>
      Effect.map(targetOf(fields, connection), (to) => {
        // Letters that came back from the redrive before do not use up more of their redrives.
        const operation = dependencies.jobs.of(fields.get("again") ?? "")?.operation
        return Redrive.plan(connection, place.queue, selection, { to, operation })
      })
    )(asking, dependencies)
}

/** Returns the target queue, which must be configured; `undefined` for the queues that the letters came from. */
export const targetOf = (fields: URLSearchParams, { name, queues }: Connection) => {
  const to = fields.get("to") ?? ""
  if (to === "") return Effect.undefined
  return queues.some((queue) => queue.name === to)
    ? Effect.succeed(to)
    : Effect.fail(wrong(`no queue ${to} is configured on ${name}`, "Nothing was done. Choose a queue of the list"))
}

/** Returns the dry run that a form names. It must have the same letters, and have ended without an error. */
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
          detail: "no dry run has counted these letters",
          remedy: "Nothing was done. Count first"
        })
      )
}

/** The largest number of first stages of a redrive, and of letters in a stage. */
const mostStages = { stages: 20, letters: 1_000_000 }

/** Reads the sizes of stages from a field; an empty field has the default stages. */
const sizesOf = (fields: URLSearchParams): Effect.Effect<ReadonlyArray<number>, Refusal> => {
  const sizes = (fields.get("stages") ?? "").split(/[\s,;]+/).filter((text) => text !== "")
  const isSize = (text: string) => /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= mostStages.letters
  if (sizes.length === 0) return Effect.succeed(Redrive.stages)
  return sizes.length <= mostStages.stages && sizes.every(isSize)
    ? Effect.succeed(sizes.map(Number))
    : Effect.fail(
        wrong(
          `stages must be up to ${mostStages.stages} whole numbers from 1 to ${mostStages.letters}, such as 1, 10, 100`,
          "Nothing was done. Go back and change it",
          "stages"
        )
      )
}

/** Returns the stages that the fields ask for; `undefined` to redrive all letters at once. */
const stagedOf = (fields: URLSearchParams): Effect.Effect<Staged | undefined, Refusal> =>
  Effect.gen(function* () {
    const how = fields.get("how")
    if (how === "at-once") return undefined
    if (how !== "stages") return yield* wrong("how must be stages or at-once", "Nothing was done")
    const percent = yield* numberOf(fields, "stopAt", "decimal", 0, 100)
    return { stages: yield* sizesOf(fields), stopAt: percent === undefined ? Redrive.stopAt : percent / 100 }
  })

/** Redrives the letters that a dry run has counted. */
export const redriveRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: (asking, dependencies) => {
    const { fields, visit } = asking
    const redriven = working((_, connection, selected) =>
      Effect.gen(function* () {
        const plan = yield* planOf(dependencies, fields.get("plan") ?? "", selected)
        const rate = yield* numberOf(fields, "rate", "decimal", 0.001, 100_000)
        return Redrive.redrive(connection, selected.place.queue, { plan, staged: yield* stagedOf(fields), rate })
      })
    )(asking, dependencies)
    return orAgain(redriven, fields, (problem) => job(visit, dependencies.jobs.of(fields.get("plan") ?? "")!, problem))
  }
}

/** Removes letters of a cause, or all letters of a queue, for good, after the operator has typed the queue's name. */
export const purgeRoute: Route = {
  method: "POST",
  needs: "purge",
  answer: (asking, dependencies) =>
    Effect.gen(function* () {
      const located = yield* placeOf(asking.fields, dependencies)
      const { connection, place } = located
      const selection = yield* selectionOf(asking, dependencies, located)
      const letters = selection.title
      const purged = Effect.suspend(() => {
        if (selection.letter !== undefined) return wrong("a purge of one letter is not possible", "Nothing was removed")
        if (asking.fields.get("name") !== place.queue) return wrongName(place.queue)
        return begin(asking, dependencies, place, Purge.make(connection, place.queue, selection))
      })
      return yield* orAgain(purged, asking.fields, (problem) =>
        purgeAgain(asking.visit, { place, letters, route: "purge" }, problem)
      )
    })
}

/** Parks letters of a dead-letter queue, or moves parked letters back. */
export const parkRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: working((_, connection, { place: { queue }, selection }) =>
    Effect.succeed(Park.make(connection, queue, selection))
  )
}

/** Stops a job. An operator needs the role that may begin the job. */
export const stopRoute: Route = {
  method: "POST",
  needs: "redrive",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      const job = yield* jobOf(fields, dependencies)
      const needs = roleOf[job.kind]
      if (!visit.may.has(needs)) {
        const detail = `only the role ${needs} can stop a ${job.kind}`
        return yield* new Refusal({ status: 403, detail, remedy: "The job goes on. Ask an operator with that role" })
      }
      const operation: Audit.Operation = {
        id: job.id,
        command: "console stop",
        operator: visit.operator,
        broker: job.place.broker,
        queues: [job.place.queue],
        options: {}
      }
      // A failing audit does not delay the stop: its error follows.
      dependencies.jobs.stop(job.id)
      yield* Effect.mapError(
        Audit.around(dependencies.audit, operation)(Effect.void),
        ({ detail, status }) =>
          new Refusal({ status, detail: `the job stops, but ${detail}`, remedy: "Make the audit writable" })
      )
      return { to: visit.paths.to("job", jobQuery(job)) }
    })
}
