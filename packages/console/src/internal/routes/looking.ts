/** Browses on request, because browsing may cost something: browses of letters, and the search for a body. */
import { AuditLine } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Audit from "../../Audit.ts"
import { queryOf } from "../visit.ts"
import * as Body from "../work/body.ts"
import { longest } from "../work/looks.ts"
import * as Selection from "../work/selection.ts"
import { numberOf } from "./fields.ts"
import { capabilitiesOf, letterPage } from "./reading.ts"
import { placeOf, type Route } from "./route.ts"

/** Begins a browse. The browse is in the audit if the broker counts it as a delivery. */
export const lookRoute: Route = {
  method: "POST",
  needs: "view",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      const { connection, filter, place } = yield* placeOf(fields, dependencies)
      const limit = yield* numberOf(fields, "limit", "whole", 1, longest)
      const { uncountedBrowse } = yield* capabilitiesOf(dependencies, connection)
      const operation: Audit.Operation = {
        id: AuditLine.newId(),
        command: "console look",
        operator: visit.operator,
        broker: place.broker,
        queues: [place.queue],
        filters: filter,
        options: { limit: limit ?? longest }
      }
      yield* dependencies.looks.begin(connection, place, {
        operator: visit.operator,
        limit: limit ?? longest,
        filter: filter && Selection.filtering(filter, visit.now, dependencies.redact, place),
        around: uncountedBrowse ? undefined : Audit.around(dependencies.audit, operation)
      })
      return { to: visit.paths.to("deadLetters", queryOf(place)) }
    })
}

/** Shows the body of a letter. */
export const bodyRoute: Route = {
  method: "POST",
  needs: "bodies",
  answer: (asking, dependencies) =>
    letterPage(asking, dependencies, (connection, { broker, queue }, { id, key }) => {
      const operation: Audit.Operation = {
        id: AuditLine.newId(),
        command: "console body",
        operator: asking.visit.operator,
        broker,
        queues: [queue],
        options: { letter: id }
      }
      const find = Body.find(connection, queue, key, {
        redact: dependencies.redact,
        turn: dependencies.turns({ broker, queue })
      })
      return Audit.around(dependencies.audit, operation)(find)
    })
}
