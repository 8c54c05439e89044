/** The flows of messages between the topics and channels of a plan. Pure. */
import { type Adapter, Plan, RetryPolicy } from "@requeue/core/port"
import type { Settings } from "../../NsqOptions.ts"
import type * as NsqPlan from "../../NsqPlan.ts"
import * as Names from "../names.ts"

/** Whether a retry becomes a copy. */
const isCopied =
  ({ retry }: Pick<Settings, "retry">, cap: number) =>
  ({ delay: [, longest] }: RetryPolicy.Step): boolean =>
    retry === "exact" || longest > cap

/** Returns the flows of a plan. `cap` is the longest delay that nsqd keeps, in milliseconds. */
export const flows = (
  { deadLetters, retry, source }: NsqPlan.Plan,
  request: Adapter.PlanRequest,
  settings: Pick<Settings, "retry">,
  cap: number
): ReadonlyArray<Plan.Flow> => {
  const from = Names.toText(source)
  const back = Names.toText(retry)
  const { false: requeued = [], true: copied = [] } = Object.groupBy(RetryPolicy.schedule(request.retry), (step) =>
    isCopied(settings, cap)(step) ? "true" : "false"
  )
  const ways =
    copied.length === 0
      ? []
      : [
          { from, to: retry.topic, label: `${Plan.after(copied)}, as a copy` },
          { from: retry.topic, to: back, label: "" },
          { from: back, to: from, label: "when due, to the same consumer" }
        ]
  const topics = new Map(
    RetryPolicy.deadLetterQueues(request.retry, request.queue).map((name, index) => [name, deadLetters[index]!])
  )
  return [
    { from: source.topic, to: from, label: "" },
    ...(requeued.length === 0 ? [] : [{ from, to: from, label: Plan.after(requeued) }]),
    ...ways,
    ...Plan.deadLetters(request.queue, request.retry).map(({ label, to }) => ({
      from,
      to: topics.get(to)!.topic,
      label
    }))
  ]
}
