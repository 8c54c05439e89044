import { expect, it } from "vitest"
import * as Checker from "../src/check/Checker.ts"
import * as Table from "../src/Table.ts"
import * as Story from "./Story.ts"

it("prints who does what, when, and what shows the violation", () => {
  const story = Story.make()
  story.start("a1")
  story.start("b1")
  const copy = story.send(1)
  story.wait(1.25)
  const delivery = story.deliver(copy, 1, "a1")
  story.say({ _tag: "Told", process: "a1", event: "Received", id: "m1", detail: "" })
  story.run(delivery, { calls: [Story.call("retry", 1, 500)], error: "error", takes: 20 })
  const retried = story.settle(delivery, Story.retry(500))
  story.say({ _tag: "Told", process: "a1", event: "RetryScheduled", id: "m1", detail: "500" })
  story.wait(400)
  story.say({ _tag: "Fault", site: "echo work 1", kind: "echo" })
  const early = story.deliver(retried, 1, "b1", 2)
  story.run(early)
  story.settle(early, Story.ack)
  story.kill("a1")

  const violations = Checker.check(Story.scenario(), story.history)
  expect(Table.print(story.history, violations)).toMatchInlineSnapshot(`
    "           ms  operators             broker                a                     b
                0                                              a1 starts, version 0
                0                                              credit 1
                0                                                                    b1 starts, version 0
                0                                                                    credit 1
                0  sends #1
                0                        stores #1/101
                0  #1 is confirmed
              1.3                        hands #1/101 to a1 as d102
              1.3                                              gets d102: #1, attempt 1
              1.3                                              runs r103: #1, attempt 1
             21.3                                              r103 calls #1.retry(500)
             21.3                                              r103 threw error
             21.3                                              d102: Retry in 500?
     1       21.3                        stores #1/104, due 521.3
             21.3                        removes #1/101, settled by d102
             21.3                                              d102: Retry in 500 taken
            421.3  FAULT echo work 1
            421.3                        hands #1/104 to b1 as d105
            421.3                                                                    gets d105: #1, attempt 2
     1      421.3                                                                    runs r106: #1, attempt 2
            421.3                                                                    r106 returned
            421.3                                                                    d105: Ack?
            421.3                        removes #1/104, settled by d105
            421.3                                                                    d105: Ack taken
            421.3                                              a1 DIES (scenario)

    1. early (at 421.3 ms, #1, d105, b1): b1 began a handler at 421 ms; expected none before 521 ms, as its clocks have it."
  `)
})

it("begins with the world and the versions of the program", () => {
  const scenario = Story.scenario({ version: { batch: { size: 3, wait: 100 }, backoff: [500, 5000] } })
  expect(Table.print([], [], scenario)).toMatchInlineSnapshot(`
    "seed 1, broker rabbitmq, faults until 1000
    version 0: attempts 3, backoff 500 5000, deliveries 13, dead letters to work.dlq, concurrency 1, prefetch 0, batches of 3 or 100, handler timeout 10000, drain timeout 1000

               ms  operators             broker"
  `)
})
