import { adapter as memory } from "@requeue/adapter-memory"
import { adapter as nsq } from "@requeue/adapter-nsq"
import { adapter as postgres } from "@requeue/adapter-postgres"
import { adapter as rabbitmq } from "@requeue/adapter-rabbitmq"
import { adapter as sqlite } from "@requeue/adapter-sqlite"
import { adapter as sqs } from "@requeue/adapter-sqs"
import { expect, test } from "vitest"
import { available, find } from "../src/brokers.ts"

test("the schemes of a broker are those that its adapter serves", () => {
  const adapters = { memory, sqlite, postgres, rabbitmq, nsq, sqs }
  expect(Object.keys(adapters)).toEqual(available)
  for (const name of available) expect(find("name", name)).toMatchObject({ schemes: adapters[name].schemes })
})

test("a broker is found by name and by scheme, and what does not exist says so", () => {
  expect(find("scheme", "memory")).toMatchObject({ name: "memory", url: "memory:" })
  expect(find("scheme", "nsq")).toMatchObject({ name: "nsq" })
  expect(find("scheme", "amqps")).toMatchObject({ name: "rabbitmq" })
  expect(find("scheme", "sqs")).toMatchObject({ name: "sqs" })
  expect(find("name", "kafka")).toBe(`no broker named "kafka"; there is: memory, sqlite, postgres, rabbitmq, nsq, sqs`)
})
