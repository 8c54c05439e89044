/**
 * Queues in a separate package, which a producer and a consumer depend on: in TypeScript, with the tarballs as users would have
 * them. The producer is CommonJS, the consumer a module, and the other way round. Their sources are in `shared/`.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { call, project } from "./project.mjs"
import { prints, verdict } from "./verdict.mjs"

const source = (name) => readFileSync(new URL(`shared/${name}.ts`, import.meta.url), "utf8")

const manifest = (name, type) =>
  JSON.stringify({
    name,
    version: "1.0.0",
    type,
    exports: { types: "./dist/index.d.ts", default: "./dist/index.js" },
    peerDependencies: { "@requeue/core": "*", effect: "*" }
  })

const configuration = JSON.stringify({
  compilerOptions: {
    target: "es2024",
    lib: ["es2024", "esnext.disposable", "dom"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    declaration: true,
    rootDir: ".",
    outDir: "dist",
    types: []
  },
  files: ["index.ts"]
})

/** By the package, the name of its source and its kind; the queues come first, because the others need them. */
const packages = {
  "acme-queues": ["queues", "module"],
  "acme-producer": ["producer", "commonjs"],
  "acme-consumer": ["consumer", "module"],
  "acme-producer-module": ["producer", "module"],
  "acme-consumer-commonjs": ["consumer", "commonjs"]
}

const main = (producer, consumer) => `import { connect } from "@requeue/core/promise"
import { consume } from "${consumer}"
import { misuse, produce } from "${producer}"

const requeue = await connect("memory:")
const handled = Promise.withResolvers()
await consume(requeue, handled.resolve)
console.log(await misuse(requeue))
await produce(requeue)
console.log(await handled.promise)
await requeue.close()
`

const files = {
  ...Object.fromEntries(
    Object.entries(packages).flatMap(([name, [text, type]]) => [
      [`${name}/package.json`, manifest(name, type)],
      [`${name}/index.ts`, source(text)],
      [`${name}/tsconfig.json`, configuration]
    ])
  ),
  "one.mjs": main("acme-producer", "acme-consumer"),
  "two.mjs": main("acme-producer-module", "acme-consumer-commonjs")
}

const expected =
  /^send to queue orders: body: InvalidBody: items\[0\]\.price: .*\n2 items of 2026, then: orders undecodable\n$/

/** `node` is the Node to run on, `wanted` are the tarballs and their other dependencies. */
export const shared = async (node, ...wanted) => {
  const beside = Object.keys(packages).map((name) => `./${name}`)
  const folder = await project("shared", files, ...wanted, ...beside, "zod@4.6.7")
  for (const name of Object.keys(packages)) {
    await verdict(`shared queues: ${name} compiles`, call("tsc", ["-p", name], folder), prints(/^$/))
  }
  for (const name of ["one", "two"]) {
    await verdict(
      `shared queues: program ${name}`,
      call(node, [join(folder, `${name}.mjs`)], folder),
      prints(expected, /^(.* level=WARN .*\n)*$/)
    )
  }
}
