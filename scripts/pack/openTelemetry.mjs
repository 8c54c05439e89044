/** OpenTelemetry in each of its versions, installed in an empty project by the lines of its README. */
import { readFileSync } from "node:fs"
import { call, project } from "./project.mjs"
import { prints, verdict } from "./verdict.mjs"

const program = `
  import { connect } from "@requeue/core/promise"
  import { OpenTelemetry } from "@requeue/opentelemetry"
  const requeue = await connect("memory:", { telemetry: OpenTelemetry.make() })
  await requeue.send("orders", 1)
  await requeue.close()
  console.log("sent")`

const readme = readFileSync(new URL("../../packages/opentelemetry/README.md", import.meta.url), "utf8")
const [, packages] = /^npm install @requeue\/opentelemetry (.+)$/m.exec(readme)
const pairs = [...readme.matchAll(/`(@opentelemetry\/api@[\d.]+ @opentelemetry\/core@\d+)`/g)].map(([, pair]) => pair)

/** `node` is the Node to run on, `wanted` are the tarballs and their other dependencies. */
export const openTelemetry = (node, ...wanted) =>
  Promise.all(
    [packages, ...pairs].map(async (line, index) => {
      const folder = await project(`telemetry-${index}`, { "main.mjs": program }, ...wanted, ...line.split(" "))
      await verdict(`npm install ${line}`, call(node, ["main.mjs"], folder), prints(/^sent\n$/))
    })
  )
