/**
 * The order of a package's test files: the named ones are first, in this order. A long file that begins last delays the whole
 * run, and Vitest knows the duration of a file only after a first run.
 */
import { basename } from "node:path"
import { BaseSequencer } from "vitest/node"

/** Settings of Vitest's `sequence`: the files of these names, without `.test.ts`, before all others. */
export const longestFirst = (...names) => ({
  sequencer: class extends BaseSequencer {
    async sort(files) {
      const rank = ({ moduleId }) => {
        const index = names.indexOf(basename(moduleId, ".test.ts"))
        return index === -1 ? names.length : index
      }
      const sorted = await super.sort.call(this, files)
      return sorted.toSorted((a, b) => rank(a) - rank(b))
    }
  }
})
