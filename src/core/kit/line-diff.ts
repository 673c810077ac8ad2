const context = 3
/** Maximum number of added and removed lines of a difference. */
export const maxDiffEdits = 2000

interface Edit {
  readonly from: number
  readonly to: number
  readonly newFrom: number
  readonly newTo: number
}

/**
 * Returns the unified diff of two texts, as `diff -u` writes it, without the two lines of file names. Empty for equal
 * texts; undefined when too many lines differ.
 */
export function unifiedDiff(before: string, after: string): string | undefined {
  const [old, now] = [linesWithEnds(before), linesWithEnds(after)]
  const edits = editsOf(old, now)
  if (edits === undefined) return undefined
  return hunksOf(edits)
    .map((hunk) => formatHunk(hunk, old, now))
    .join('')
}

function linesWithEnds(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

/** The shortest edits between two lists of lines (Myers, 1986), between their common beginning and end. */
function editsOf(old: readonly string[], now: readonly string[]): readonly Edit[] | undefined {
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let [end, newEnd] = [old.length, now.length]
  while (end > start && newEnd > start && old[end - 1] === now[newEnd - 1]) {
    end--
    newEnd--
  }
  const path = shortestPath(old.slice(start, end), now.slice(start, newEnd))
  if (path === undefined) return undefined
  const edits: Edit[] = []
  for (const [x, y, isAdded] of path) {
    const [from, newFrom] = [start + x, start + y]
    const last = edits.at(-1)
    const next = { from, to: isAdded ? from : from + 1, newFrom, newTo: isAdded ? newFrom + 1 : newFrom }
    if (last !== undefined && last.to === from && last.newTo === newFrom)
      edits[edits.length - 1] = { ...last, to: next.to, newTo: next.newTo }
    else edits.push(next)
  }
  return edits
}

type Step = readonly [x: number, y: number, isAdded: boolean]

function shortestPath(old: readonly string[], now: readonly string[]): readonly Step[] | undefined {
  const most = Math.min(maxDiffEdits, old.length + now.length)
  const reached = new Int32Array(2 * most + 3)
  const at = (k: number) => reached[k + most + 1] ?? 0
  const traces: Int32Array[] = []
  for (let d = 0; d <= most; d++) {
    traces.push(reached.slice(most + 1 - d, most + 2 + d))
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1
      while (x < old.length && x - k < now.length && old[x] === now[x - k]) x++
      reached[k + most + 1] = x
      if (x >= old.length && x - k >= now.length) return stepsOf(traces, old.length, now.length)
    }
  }
  return undefined
}

function stepsOf(traces: readonly Int32Array[], oldLength: number, newLength: number): readonly Step[] {
  const steps: Step[] = []
  let [x, y] = [oldLength, newLength]
  for (let d = traces.length - 1; d > 0; d--) {
    const trace = traces[d]
    const at = (k: number) => trace?.[k + d] ?? 0
    const k = x - y
    const isAdded = k === -d || (k !== d && at(k - 1) < at(k + 1))
    const before = isAdded ? k + 1 : k - 1
    const [fromX, fromY] = [at(before), at(before) - before]
    steps.push([fromX, fromY, isAdded])
    x = fromX
    y = fromY
  }
  return steps.reverse()
}

function hunksOf(edits: readonly Edit[]): readonly (readonly Edit[])[] {
  const hunks: Edit[][] = []
  for (const edit of edits) {
    const last = hunks.at(-1)
    if (last !== undefined && edit.from - (last.at(-1)?.to ?? 0) <= 2 * context) last.push(edit)
    else hunks.push([edit])
  }
  return hunks
}

function formatHunk(edits: readonly Edit[], old: readonly string[], now: readonly string[]): string {
  const [first, last] = [edits[0], edits.at(-1)]
  if (first === undefined || last === undefined) return ''
  const from = Math.max(0, first.from - context)
  const to = Math.min(old.length, last.to + context)
  const newFrom = first.newFrom - (first.from - from)
  const newTo = last.newTo + (to - last.to)
  const lines: string[] = [`@@ -${formatHunkRange(from, to)} +${formatHunkRange(newFrom, newTo)} @@\n`]
  let at = from
  for (const edit of edits) {
    for (const line of old.slice(at, edit.from)) lines.push(marked(' ', line))
    for (const line of old.slice(edit.from, edit.to)) lines.push(marked('-', line))
    for (const line of now.slice(edit.newFrom, edit.newTo)) lines.push(marked('+', line))
    at = edit.to
  }
  for (const line of old.slice(at, to)) lines.push(marked(' ', line))
  return lines.join('')
}

/**
 * Formats a range of lines as `diff -u` does: the number of its first line, and the number of lines unless it is one.
 */
function formatHunkRange(from: number, to: number): string {
  const count = to - from
  return count === 1 ? `${from + 1}` : `${count === 0 ? from : from + 1},${count}`
}

function marked(mark: string, line: string): string {
  return line.endsWith('\n') ? mark + line : `${mark}${line}\n\\ No newline at end of file\n`
}
