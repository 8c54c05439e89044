/** The topics and channels of a plan, as data. Pure. */
import type { Plan } from "@requeue/core/port"
import type * as NsqPlan from "../../NsqPlan.ts"
import * as Names from "../names.ts"

/** Returns every queue of a plan. */
export const queuesOf = ({ deadLetters, retry, source }: NsqPlan.Plan): ReadonlyArray<Names.Queue> => [
  source,
  retry,
  ...deadLetters
]

/** Returns a topic and a channel for each queue of a plan, each once, as the CLI shows them. */
export const objectsOf = ({ deadLetters, retry, source }: NsqPlan.Plan): ReadonlyArray<Plan.PlannedObject> => {
  const all = (role: string, queue: Names.Queue) => [
    { kind: "topic", name: queue.topic, details: role },
    { kind: "channel", name: Names.toText(queue), details: "" }
  ]
  const objects = [
    ...all("messages", source),
    ...all("retries that are copies", retry),
    ...deadLetters.flatMap((queue) => all("dead letters", queue))
  ]
  return [...new Map(objects.map((object) => [object.name, object])).values()]
}
