/**
 * Occupies a core, as a child of busy.mjs. In slices: after each it reports its CPU time, and ends if its parent has died for any
 * reason.
 */
const end = performance.now() + 2 * 3_600_000

process.once("disconnect", () => process.exit())

const spin = () => {
  for (const until = performance.now() + 100; performance.now() < until; );
  if (performance.now() > end) process.exit()
  // "disconnect" reports that the parent no longer reads.
  process.send(process.cpuUsage(), () => {})
  setImmediate(spin)
}
spin()
