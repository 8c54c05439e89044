/** A counter that says yes every `n`th time it is asked, and never when `n` is 0. */
export const every = (n: number): (() => boolean) => {
  let asked = 0
  return () => n > 0 && ++asked % n === 0
}
