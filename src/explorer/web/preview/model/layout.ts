import type { DatabaseOverview, SchemaTable } from './documents.ts'

export interface TableBox {
  readonly table: SchemaTable
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  /** The shown columns of the table: at most eight of the primary key and of foreign keys, in this order. */
  readonly lines: readonly { readonly name: string; readonly isKey: boolean }[]
}

const [width, head, line, gapX, gapY, most, across] = [200, 28, 18, 90, 24, 8, 1600]

/**
 * Places the tables of a diagram. Tables that refer to each other form a group. Within a group a table stands to the left of the tables
 * that it refers to, except in cycles. The groups stand in rows, the largest first.
 */
export function placeTables({ tables, links }: DatabaseOverview) {
  const byId = new Map(tables.map((table) => [table.id, table]))
  const beside = new Map<string, Set<string>>(tables.map(({ id }) => [id, new Set()]))
  for (const { from, to } of links) {
    if (from === to) continue
    beside.get(from)?.add(to)
    beside.get(to)?.add(from)
  }
  const groups = findConnectedComponents(
    tables.map(({ id }) => id),
    beside,
  ).sort((a, b) => b.length - a.length)
  const boxes = new Map<string, TableBox>()
  const position = { x: 0, y: 0, low: 0, right: 0 }
  for (const group of groups) {
    const columns = arrangeInColumns(group, links, beside).map((ids) => ids.flatMap((id) => byId.get(id) ?? []))
    const wide = columns.length * (width + gapX) - gapX
    const tall = Math.max(...columns.map((column) => heightOf(column)))
    if (position.x > 0 && position.x + wide > across) Object.assign(position, { x: 0, y: position.low + gapY * 2 })
    for (const [index, column] of columns.entries()) {
      let y = position.y + (tall - heightOf(column)) / 2
      for (const table of column) {
        const box = boxOf(table, position.x + index * (width + gapX), y)
        boxes.set(table.id, box)
        y += box.height + gapY
      }
    }
    Object.assign(position, {
      x: position.x + wide + gapX,
      low: Math.max(position.low, position.y + tall),
      right: Math.max(position.right, position.x + wide),
    })
  }
  return { boxes, width: position.right, height: position.low }
}

function tableBoxLines({ keys, foreign }: SchemaTable): TableBox['lines'] {
  const all = [...keys.map((name) => ({ name, isKey: true })), ...foreign.map((name) => ({ name, isKey: false }))]
  return all.slice(0, most)
}

function boxOf(table: SchemaTable, x: number, y: number): TableBox {
  const lines = tableBoxLines(table)
  return { table, x, y, width, height: head + (lines.length + 1) * line + 6, lines }
}

function heightOf(column: readonly SchemaTable[]): number {
  return column.reduce((sum, table) => sum + boxOf(table, 0, 0).height + gapY, -gapY)
}

function findConnectedComponents(ids: readonly string[], beside: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const seen = new Set<string>()
  const groups: string[][] = []
  for (const id of ids) {
    if (seen.has(id)) continue
    const group: string[] = []
    const pending = [id]
    seen.add(id)
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      group.push(next)
      for (const other of beside.get(next) ?? [])
        if (!seen.has(other)) {
          seen.add(other)
          pending.push(other)
        }
    }
    groups.push(group)
  }
  return groups
}

/** Puts each table into a column to the left of the tables that it refers to. A reference that closes a cycle is ignored. */
function arrangeInColumns(
  group: readonly string[],
  links: DatabaseOverview['links'],
  beside: ReadonlyMap<string, ReadonlySet<string>>,
): readonly (readonly string[])[] {
  const own = new Set(group)
  const targets = new Map<string, string[]>(group.map((id) => [id, []]))
  for (const { from, to } of links) if (own.has(from) && from !== to) targets.get(from)?.push(to)
  const ranks = new Map<string, number>()
  const rankOf = (id: string, path: ReadonlySet<string>): number => {
    const oldRank = ranks.get(id)
    if (oldRank !== undefined) return oldRank
    const next = (targets.get(id) ?? []).filter((target) => !path.has(target))
    const rank = next.length === 0 ? 0 : 1 + Math.max(...next.map((target) => rankOf(target, new Set([...path, id]))))
    ranks.set(id, rank)
    return rank
  }
  for (const id of group) rankOf(id, new Set())
  const deepest = Math.max(...ranks.values())
  const columns = Array.from({ length: deepest + 1 }, (_, rank) =>
    group.filter((id) => ranks.get(id) === deepest - rank),
  )
  // A tall column is split, so that many tables around one stay on the screen.
  const split = columns.flatMap((column) => splitEvenly(column, Math.max(8, Math.ceil(Math.sqrt(group.length) * 1.6))))
  return ordered(split, beside)
}

function splitEvenly(ids: readonly string[], size: number): readonly (readonly string[])[] {
  const pieces = Math.ceil(ids.length / size)
  const each = Math.ceil(ids.length / Math.max(pieces, 1))
  return Array.from({ length: pieces }, (_, index) => ids.slice(index * each, (index + 1) * each))
}

/** Sorts each column, so that linked tables are near each other and fewer lines cross. */
function ordered(
  columns: readonly (readonly string[])[],
  beside: ReadonlyMap<string, ReadonlySet<string>>,
): readonly (readonly string[])[] {
  let now = columns
  for (let round = 0; round < 4; round++) {
    const positions = new Map(
      now.flatMap((column) => column.map((id, index) => [id, (index + 0.5) / column.length] as const)),
    )
    const middle = (id: string) => {
      const others = [...(beside.get(id) ?? [])].map((other) => positions.get(other) ?? 0.5)
      return others.length === 0 ? 0.5 : others.reduce((sum, position) => sum + position, 0) / others.length
    }
    now = now.map((column) => [...column].sort((a, b) => middle(a) - middle(b)))
  }
  return now
}
