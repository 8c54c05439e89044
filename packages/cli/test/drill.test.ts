/** The page of the drill, and its session on every broker: both type the five commands of the page. Other pages link to it. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { steps, turns } from "./Session.ts"

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")

const page = read("docs/drill.md")
const [, list = ""] = /```sh\n(.*?)```/s.exec(page) ?? []
const commands = list.split("\n").filter((line) => line.startsWith("requeue "))

/** The page, which is on RabbitMQ, and the session of all brokers. */
const replayed = [page, read("packages/cli/test/sessions/drill.md")]

const typed = (text: string, broker: string): ReadonlyArray<string> =>
  steps(text, broker).flatMap((step) =>
    step._tag === "Command" && step.command.startsWith("requeue ") ? [step.command] : []
  )

describe("the drill", () => {
  it("is five commands", () => assert.lengthOf(commands, 5))

  it.each(
    replayed.flatMap((text) => turns(text).flatMap(({ each = "" }) => (each === "memory" ? [] : [{ each, text }])))
  )("types them as they stand at its top, on $each", ({ each, text }) => {
    assert.deepStrictEqual(typed(text, each).slice(0, commands.length), commands)
  })

  it.each(["README.md", "packages/cli/README.md", "docs/cli.md", "docs/dead-letters.md", "docs/observability.md"])(
    "is linked from %s",
    (from) => assert.match(read(from), /\]\((\.\.\/\.\.\/)?(docs\/)?drill\.md\)/)
  )

  it("is what the alert of dead letters names, with its first command", () => {
    const [, alert = ""] =
      /(- alert: RequeueMessagesGivenUp\n.*?)\n +- alert:/s.exec(
        read("packages/opentelemetry/prometheus/requeue.rules.yaml")
      ) ?? []
    assert.include(alert, "runbook: docs/drill.md")
    assert.include(alert, commands[0]!.replace("orders", "{{ $labels.messaging_destination_name }}"))
  })
})
