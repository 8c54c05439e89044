/**
 * Loads a program with one place of one source file changed. `node --import` this, with the mutant as JSON in
 * REQUEUE_MUTANT: `{ file, from, to }`. A text that is not there exactly once is an error, so that no mutant goes stale.
 */
import { registerHooks } from "node:module"

const { file, from, to } = JSON.parse(process.env.REQUEUE_MUTANT)

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    if (!url.endsWith(`/packages/${file}`)) return loaded
    const source = String(loaded.source)
    const parts = source.split(from)
    if (parts.length !== 2) throw new Error(`${file} has the text of the mutant ${parts.length - 1} times: ${from}`)
    return { ...loaded, source: parts.join(to) }
  }
})
