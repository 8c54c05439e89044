import { describe, expect, test } from "vitest"
import { help, parse, UsageError } from "../src/options.ts"

const parsed = (...args: ReadonlyArray<string>) => parse(args)

test("the defaults", () => {
  const rest = { count: 1000, seed: 1, drain: 15_000, json: false, outbox: false, wait: false }
  expect(parsed()).toEqual({ broker: "memory", url: "memory:", ...rest })
})

test("every option", () => {
  const args = [
    "--broker",
    "memory",
    "--url",
    "memory:?maxMessages=50",
    "--count=5",
    "--seed",
    "0",
    "--drain",
    "0s",
    "--json",
    "--outbox"
  ]
  expect(parsed(...args)).toEqual({
    broker: "memory",
    url: "memory:?maxMessages=50",
    count: 5,
    seed: 0,
    drain: 0,
    json: true,
    outbox: true,
    wait: false
  })
})

test("dead letters wait for another process, which sees no memory broker", () => {
  expect(parsed("--wait", "--broker", "nsq")).toMatchObject({ wait: true })
  expect(() => parsed("--wait")).toThrow(UsageError)
})

test.each(["sqlite", "postgres"])("%s has transactions, so it needs no outbox", (broker) => {
  expect(() => parsed("--outbox", "--broker", broker)).toThrow(/in a database already/)
})

test.each([
  ["rabbitmq", "amqps://rabbit.example"],
  ["nsq", "nsq://nsqd.example?lookupd=nsqlookupd.example:4161"]
])("%s is one that is started, or the one of a URL", (broker, url) => {
  expect(parsed("--broker", broker)).toMatchObject({ broker, url: undefined })
  expect(parsed("--url", url)).toMatchObject({ broker, url })
})

test.each([
  ["500ms", 500],
  ["10s", 10_000],
  ["1.5s", 1500],
  ["2 minutes", 120_000],
  ["1 second", 1000],
  ["1h", 3_600_000]
])("--drain %s", (text, millis) => {
  expect(parsed("--drain", text)).toMatchObject({ drain: millis })
})

test("--help wins over other options, and names every option and exit code", () => {
  expect(parsed("--help", "--count", "0")).toBe("help")
  expect(parsed("-h")).toBe("help")
  for (const word of ["--broker", "--url", "--count", "--seed", "--drain", "--json", "130", "143"]) {
    expect(help).toContain(word)
  }
})

describe("mistakes are named with what would be right", () => {
  test.each<[ReadonlyArray<string>, RegExp]>([
    [
      ["--broker", "kafka"],
      /--broker: no broker named "kafka"; there is: memory, sqlite, postgres, rabbitmq, nsq, sqs/
    ],
    [["--broker", "constructor"], /no broker named "constructor"/],
    [["--broker", ""], /no broker named ""/],
    [
      ["--url", "kafka://localhost"],
      /--url: no broker for kafka: URLs; there is: memory, sqlite, postgres, rabbitmq, nsq, sqs/
    ],
    [["--broker", "memory", "--url", "amqp://localhost"], /memory is reached by memory: URLs, not by amqp: ones/],
    [["--url", "nowhere"], /--url: the value is not a valid URL/],
    [["--url", "amqp://me:1234/hunter2@host"], /^--url: the URL has an @ after the host$/],
    [["--count", "0"], /--count: must be a whole number from 1 to 100000, got "0"/],
    [["--count", "1e3"], /--count/],
    [["--count", "100001"], /--count/],
    [["--count", ""], /--count/],
    [["--seed=-1"], /--seed: must be a whole number from 0 to 4294967295, got "-1"/],
    [["--seed", "4294967296"], /--seed/],
    [["--drain", "soon"], /--drain: must be a duration up to 1h such as 500ms, 10s or "2 minutes", got "soon"/],
    [["--drain", "10"], /--drain/],
    [["--drain", "2h"], /--drain/],
    [["--drain=-1s"], /--drain/],
    [["--drain", "3 sheep"], /--drain/],
    [["--jsn"], /Unknown option '--jsn'/],
    [["--count"], /--count.* argument missing/],
    [["100"], /100/]
  ])("%j", (args, message) => {
    expect(() => parse(args)).toThrow(UsageError)
    expect(() => parse(args)).toThrow(message)
  })

  test("a URL that may hold a password is not repeated", () => {
    const refused = () => parse(["--url", "amqp//user:hunter2@host"])
    expect(refused).toThrow(UsageError)
    expect(refused).not.toThrow(/hunter2/)
  })
})
