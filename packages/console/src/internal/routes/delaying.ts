/** Delayed messages: their numbers, browses and purges. */
import { AuditLine, QueueStatus } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Audit from "../../Audit.ts"
import type { Queue } from "../../BrokerSource.ts"
import { delayed, titleOf } from "../pages/delayed.ts"
import { purgeAgain } from "../pages/letterForms.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import * as ShownWaiting from "../shownWaiting.ts"
import { jobQuery } from "../visit.ts"
import type { Connection } from "../work/connections.ts"
import * as Deadline from "../work/deadline.ts"
import * as Delayed from "../work/delayed.ts"
import * as Pause from "../work/pause.ts"
import { orAgain, wrong, wrongName } from "./fields.ts"
import { type Asking, type Dependencies, type Route, unknown } from "./route.ts"

interface Meant {
  readonly connection: Connection
  readonly queue: Queue
  readonly place: Place
}

/** The configured queue that the fields name. */
const meantBy = (fields: URLSearchParams, { connections }: Dependencies): Effect.Effect<Meant, Refusal> => {
  const [broker, name] = [fields.get("broker") ?? "", fields.get("queue") ?? ""]
  const connection = connections.get(broker)
  if (connection === undefined) return Effect.fail(unknown(`there is no broker ${broker}`))
  const queue = connection.queues.find((each) => each.name === name)
  return queue === undefined
    ? Effect.fail(unknown(`there is no queue ${name} on ${broker}`))
    : Effect.succeed({ connection, queue, place: { broker, queue: name } })
}

/** Returns the numbers that the broker reports without a browse. */
const known = ({ connection, queue }: Meant, { timeout }: Dependencies) =>
  Deadline.within(
    connection.name,
    timeout
  )(
    connection.use((broker) =>
      Effect.map(QueueStatus.of(broker, { queue: queue.name, retry: queue.retry }), (status) => ({
        status,
        capabilities: broker.capabilities
      }))
    )
  )

/** The page without a browse. */
export const delayedRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      const meant = yield* meantBy(fields, dependencies)
      const told = yield* known(meant, dependencies)
      return { page: delayed(visit, { place: meant.place, ...told, found: undefined }) }
    })
}

/** Returns the messages and errors of a browse as the operator may see them. */
const visible = ({ visit }: Asking, { redact }: Dependencies, place: Place, found: Delayed.Found) =>
  Effect.gen(function* () {
    const pause = yield* Pause.make
    const messages = yield* Effect.forEach(found.messages, (each) =>
      Effect.map(pause, () => ShownWaiting.waiting(redact, each, place, visit.may.has("bodies")))
    )
    return { ...found, messages }
  })

/** Browses the messages. The browse is in the audit if the broker counts it as a delivery. */
export const lookRoute: Route = {
  method: "POST",
  needs: "view",
  answer: (asking, dependencies) =>
    Effect.gen(function* () {
      const meant = yield* meantBy(asking.fields, dependencies)
      const { connection, place, queue } = meant
      const told = yield* known(meant, dependencies)
      const operation: Audit.Operation = {
        id: AuditLine.newId(),
        command: "console delayed",
        operator: asking.visit.operator,
        broker: place.broker,
        queues: [place.queue],
        options: {}
      }
      const looking = Delayed.look(connection, queue, dependencies.turns(place))
      const found = yield* told.capabilities.uncountedBrowse
        ? looking
        : Audit.around(dependencies.audit, operation)(looking)
      dependencies.delayed.keep(place, found.groups)
      return {
        page: delayed(asking.visit, {
          place,
          ...told,
          found: yield* visible(asking, dependencies, place, found)
        })
      }
    })
}

const gone = new Refusal({
  status: 409,
  detail: "the last browse has not found this error",
  remedy: "Nothing was removed. Browse again"
})

/** Returns the messages that a form selects: all, or those with an error that a browse has found. */
const selectionOf = ({ fields, visit }: Asking, { delayed }: Dependencies, place: Place) => {
  const id = fields.get("cause") ?? ""
  if (id === "") return Effect.fail(wrong("no messages are chosen", "Nothing was removed. Choose all, or an error"))
  if (id === Delayed.all) return Effect.succeed(Delayed.selection(undefined, "all delayed messages"))
  const cause = delayed.of(place, id)
  return cause === undefined
    ? Effect.fail(gone)
    : Effect.succeed(Delayed.selection(id, titleOf(visit.shown(cause, place))))
}

/**
 * Removes delayed messages for good, either all or those with one error, after the operator has typed the queue's name.
 */
export const purgeRoute: Route = {
  method: "POST",
  needs: "purge",
  answer: (asking, dependencies) =>
    Effect.gen(function* () {
      const { connection, place, queue } = yield* meantBy(asking.fields, dependencies)
      const { fields, visit } = asking
      const selection = yield* selectionOf(asking, dependencies, place)
      const purged = Effect.gen(function* () {
        if (fields.get("name") !== queue.name) return yield* wrongName(queue.name)
        const work = Delayed.purge(connection, queue, selection)
        const job = yield* dependencies.jobs.begin(work, visit.operator)
        return { to: visit.paths.to("job", jobQuery(job)) }
      })
      return yield* orAgain(purged, fields, (problem) =>
        purgeAgain(visit, { place, letters: selection.title, route: "purgeDelayed" }, problem)
      )
    })
}
