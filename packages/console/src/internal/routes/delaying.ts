/** Messages that wait for a retry or a delivery for later: what is known of them, looks, and their removal. */
import { AuditLine, QueueStatus } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Audit from "../../Audit.ts"
import type { Queue } from "../../BrokerSource.ts"
import { delayed, titleOf } from "../pages/delayed.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import * as ShownWaiting from "../shownWaiting.ts"
import { jobQuery } from "../visit.ts"
import type { Connection } from "../work/connections.ts"
import * as Deadline from "../work/deadline.ts"
import * as Delayed from "../work/delayed.ts"
import * as Pause from "../work/pause.ts"
import { wrong } from "./fields.ts"
import { type Asking, type Dependencies, type Route, unknown } from "./route.ts"

interface Meant {
  readonly connection: Connection
  readonly queue: Queue
  readonly place: Place
}

/** The queue that the fields name: one that is configured, and no other. */
const meantBy = (fields: URLSearchParams, { connections }: Dependencies): Effect.Effect<Meant, Refusal> => {
  const [broker, name] = [fields.get("broker") ?? "", fields.get("queue") ?? ""]
  const connection = connections.get(broker)
  if (connection === undefined) return Effect.fail(unknown(`there is no broker ${broker}`))
  const queue = connection.queues.find((each) => each.name === name)
  return queue === undefined
    ? Effect.fail(unknown(`there is no queue ${name} on ${broker}`))
    : Effect.succeed({ connection, queue, place: { broker, queue: name } })
}

/** All that the broker tells without a look. */
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

/** The page without a look. */
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

/** The messages and errors of a look as people may see them. */
const visible = ({ visit }: Asking, { redact }: Dependencies, place: Place, found: Delayed.Found) =>
  Effect.gen(function* () {
    const pause = yield* Pause.make
    const messages = yield* Effect.forEach(found.messages, (each) =>
      Effect.map(pause, () => ShownWaiting.waiting(redact, each, place, visit.may.has("bodies")))
    )
    return { ...found, messages }
  })

/** Looks at the messages. It is in the audit where a look counts as a delivery. */
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
  detail: "nobody has seen this error in the last look",
  remedy: "Nothing was removed. Look again"
})

/** The messages that the form means: all, or those of an error that a look has found. */
const selectionOf = ({ fields, visit }: Asking, { delayed }: Dependencies, place: Place) => {
  const id = fields.get("cause") ?? ""
  if (id === "") return Effect.fail(wrong("nobody has chosen which messages are meant", "Nothing was removed"))
  if (id === Delayed.all) return Effect.succeed(Delayed.selection(undefined, "all delayed messages"))
  const cause = delayed.of(place, id)
  return cause === undefined
    ? Effect.fail(gone)
    : Effect.succeed(Delayed.selection(id, titleOf(visit.shown(cause, place))))
}

/** Removes messages that wait for good, all or those of an error, when the queue's name has been typed. */
export const purgeRoute: Route = {
  method: "POST",
  needs: "purge",
  answer: (asking, dependencies) =>
    Effect.gen(function* () {
      const { connection, place, queue } = yield* meantBy(asking.fields, dependencies)
      if (asking.fields.get("name") !== queue.name) {
        return yield* wrong(`the name that was typed is not ${queue.name}`, "Nothing was removed")
      }
      const selection = yield* selectionOf(asking, dependencies, place)
      const work = Delayed.purge(connection, queue, selection)
      const job = yield* dependencies.jobs.begin(work, asking.visit.operator)
      return { to: asking.visit.paths.to("job", jobQuery(job)) }
    })
}
