/** Pages that change nothing. */
import { DeadLetters, QueueStatus } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { deadLetters, filterAgain } from "../pages/deadLetters.ts"
import { group } from "../pages/group.ts"
import { job, jobs } from "../pages/jobs.ts"
import { letter } from "../pages/letter.ts"
import { overview } from "../pages/overview.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import * as Shown from "../shown.ts"
import { queryOf, type Visit } from "../visit.ts"
import type { Body } from "../work/body.ts"
import * as CauseId from "../work/causeId.ts"
import type { Connection } from "../work/connections.ts"
import type { Kept } from "../work/letters.ts"
import { longest } from "../work/looks.ts"
import * as Deadline from "../work/deadline.ts"
import * as Park from "../work/park.ts"
import * as Pause from "../work/pause.ts"
import * as Selection from "../work/selection.ts"
import { orAgain } from "./fields.ts"
import { type Asking, type Dependencies, placeOf, type Route } from "./route.ts"

const view = (answer: Route["answer"]): Route => ({ method: "GET", needs: "view", answer })

/** Shows all queues. */
export const overviewRoute = view(({ visit }, { overviews }) =>
  Effect.gen(function* () {
    const brokers = yield* Effect.forEach(overviews, ({ look }) => look, { concurrency: "unbounded" })
    return { page: overview({ ...visit, now: yield* Clock.currentTimeMillis }, brokers) }
  })
)

const inTime = ({ timeout }: Dependencies, { name }: Connection) => Deadline.within(name, timeout)

/** Asks a broker about a dead-letter queue. Without an answer, the page shows what the console knows. */
const asked = (dependencies: Dependencies, connection: Connection, queue: string) =>
  Effect.gen(function* () {
    const capabilities = yield* capabilitiesOf(dependencies, connection)
    const home = Park.homeOf(connection, queue)
    const counted = connection.use((broker) => {
      const aside = home === undefined ? QueueStatus.deadIn(broker, DeadLetters.parkingQueue(queue)) : Effect.undefined
      return Effect.all([QueueStatus.deadIn(broker, queue), aside], { concurrency: "unbounded" })
    })
    const told = yield* Effect.match(inTime(dependencies, connection)(counted), {
      onFailure: ({ message }) => ({ dead: undefined, parked: undefined, trouble: message }),
      onSuccess: ([dead, aside]) => ({ dead, parked: aside?.count, trouble: undefined })
    })
    return { capabilities, home, ...told }
  })

/**
 * Milliseconds for which a failed browse is not repeated. Otherwise a page that reloads itself would begin a browse after
 * each failure.
 */
const repeatAfter = 5000

/** Forgets a browse that does not describe the queue any more. */
const forgetStale = (
  { looks }: Dependencies,
  place: Place,
  { capabilities, dead }: Pick<Effect.Success<ReturnType<typeof asked>>, "capabilities" | "dead">,
  now: number
): void => {
  const look = looks.of(place)
  if (look?.ended === undefined || dead === undefined) return
  const isFailed = capabilities.uncountedBrowse && look.trouble !== undefined && now - look.ended >= repeatAfter
  const isEmpty = look.trouble === undefined && look.progress.browsed === 0 && (dead.count ?? 0) > 0
  if (dead.isMissing || isFailed || isEmpty) looks.forget(place)
}

/** Shows the causes of a queue. If a browse costs nothing, the first browse begins when the page is opened. */
export const deadLettersRoute = view(({ fields, visit }, dependencies) => {
  const page = Effect.gen(function* () {
    const { connection, filter, place } = yield* placeOf(fields, dependencies)
    const { jobs, looks } = dependencies
    const known = yield* asked(dependencies, connection, place.queue)
    forgetStale(dependencies, place, known, visit.now)
    const isFree = known.capabilities.uncountedBrowse && known.dead !== undefined && !known.dead.isMissing
    const begun =
      looks.of(place) === undefined && isFree
        ? yield* looks.begin(connection, place, {
            operator: visit.operator,
            limit: longest,
            filter: filter && Selection.filtering(filter, visit.now, dependencies.redact, place)
          })
        : undefined
    const look = looks.of(place) ?? begun
    const now = { look, outdated: looks.outdated(place), running: jobs.running(place) }
    return { page: deadLetters(visit, { ...known, ...now, place, filter }) }
  })
  const place = { broker: fields.get("broker") ?? "", queue: fields.get("queue") ?? "" }
  return orAgain(page, fields, (problem) => filterAgain(visit, place, problem))
})

/** Returns the capabilities of a broker. */
export const capabilitiesOf = (dependencies: Dependencies, connection: Connection) =>
  Effect.catchTag(
    inTime(dependencies, connection)(connection.use(({ capabilities }) => Effect.succeed(capabilities))),
    "Trouble",
    (trouble) => {
      const known = connection.known()
      return known === undefined ? Effect.fail(trouble) : Effect.succeed(known)
    }
  )

/** Returns a cause that the last browse has found, and its letters. */
export const found = ({ looks }: Dependencies, place: Place, cause: string) => {
  const look = looks.of(place)
  const group = look?.groups.find((each) => CauseId.of(each) === cause)
  return look === undefined || group === undefined ? undefined : { group, letters: look.letters.of(group) }
}

const visible = ({ may }: Visit, { redact }: Dependencies, place: Place, letter: Kept) =>
  Shown.letter(redact, letter, place, may.has("bodies"))

/** Shows the letters of a cause. Redirects to the page of the queue if the console has forgotten the browse. */
export const groupRoute = view(({ fields, visit }, dependencies) =>
  Effect.gen(function* () {
    const { connection, place } = yield* placeOf(fields, dependencies)
    const cause = fields.get("cause") ?? ""
    const shown = found(dependencies, place, cause)
    if (shown === undefined) return { to: visit.paths.to("deadLetters", queryOf(place)) }
    const capabilities = yield* capabilitiesOf(dependencies, connection)
    const pause = yield* Pause.make
    const letters = yield* Effect.forEach(shown.letters, (each) =>
      Effect.map(pause, () => visible(visit, dependencies, place, each))
    )
    return { page: group(visit, { place, cause, capabilities, group: visit.shown(shown.group, place), letters }) }
  })
)

/** Shows a letter, with its body if `body` finds it. */
export const letterPage = (
  { fields, visit }: Asking,
  dependencies: Dependencies,
  find: (connection: Connection, place: Place, letter: Kept) => Effect.Effect<Body | undefined, Refusal | TroubleOf>
) =>
  Effect.gen(function* () {
    const { connection, place } = yield* placeOf(fields, dependencies)
    const [cause, key] = [fields.get("cause") ?? "", fields.get("letter") ?? ""]
    const letters = found(dependencies, place, cause)?.letters ?? []
    const kept = letters.find((each) => each.key === key)
    if (kept === undefined) return { to: visit.paths.to("deadLetters", queryOf(place)) }
    const shown = visible(visit, dependencies, place, kept)
    const capabilities = yield* capabilitiesOf(dependencies, connection)
    const body = yield* find(connection, place, kept)
    const trace = dependencies.traceUrl(shown.headers)
    const namesakes = letters.filter(({ id }) => id === kept.id)
    const alike = namesakes.filter((each) => each.key === key).length
    const twins = { namesakes: namesakes.length, alike }
    const { headers } = shown
    return { page: letter(visit, { place, cause, letter: shown, headers, capabilities, body, trace, twins }) }
  })

type TroubleOf = Effect.Error<ReturnType<Connection["use"]>>

/** Shows a letter without its body. */
export const letterRoute = view((asking, dependencies) => letterPage(asking, dependencies, () => Effect.undefined))

/** Shows all jobs. */
export const jobsRoute = view(({ visit }, dependencies) =>
  Effect.succeed({ page: jobs(visit, dependencies.jobs.all()) })
)

/** Returns the job that the fields name. */
export const jobOf = (fields: URLSearchParams, { jobs }: Dependencies) => {
  const id = fields.get("id") ?? ""
  const job = jobs.of(id)
  return job === undefined
    ? Effect.fail(
        new Refusal({
          status: 404,
          detail: `there is no job ${id}`,
          remedy: "The console forgets jobs when its process ends. The audit has them"
        })
      )
    : Effect.succeed(job)
}

/** Shows a job. */
export const jobRoute = view(({ fields, visit }, dependencies) =>
  Effect.map(jobOf(fields, dependencies), (found) => ({ page: job(visit, found) }))
)
