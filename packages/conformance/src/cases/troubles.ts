/** Queues whose messages a reachable broker does not deliver: only their own consumers report it. */
import { BrokerError } from "@requeue/core"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"

const test = Case.inGroup("troubles")

export const cases: ReadonlyArray<Case.Case> = [
  test("a consumer whose queue the broker does not give is down, alone and with the reason, until it is given", function* (lab) {
    const { broker } = lab.capabilities
    const error = new BrokerError.BrokerError({
      broker,
      operation: "consume",
      queue: lab.queue,
      reason: "AccessRefused",
      detail: "nobody may read it"
    })
    const consumer = yield* lab.start()
    const other = yield* lab.start({}, () => {}, yield* lab.harness.uniqueQueue("other"))
    const states = () => [consumer, other].map((one) => one.health().state)
    Check.equal("before", states(), ["running", "running"])
    const since = lab.now()
    lab.faults.trouble = (queue) => (queue === lab.queue ? { since, error } : undefined)
    Check.equal("meanwhile", states(), ["down", "running"])
    const told = [consumer, other].map((one) => one.health().trouble)
    Check.equal("since when", told, [{ since, because: error.message }, undefined])
    Check.isTrue("the reason", error.message.includes("nobody may read it"), error.message)
    lab.faults.trouble = undefined
    Check.equal("after", states(), ["running", "running"])
    yield* lab.send("a")
    yield* lab.untilRuns(1)
    yield* lab.untilEmpty
  })
]
