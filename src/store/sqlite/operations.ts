import { randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { ResourceError } from '../../core/errors.ts'
import type { TextOperations } from '../engine.ts'
import { parseListRow, prefixUpperBound } from '../engine.ts'
import { storeError, textByteSize } from '../rules.ts'
import type { CheckedText, TextEntry } from '../texts.ts'
import { isInSet } from '../texts.ts'
import { type Database, parseJsonList, type SqliteRow, type SqliteValue, transaction } from './database.ts'
import { createCollectionLookup, createRows, type RowOperations } from './rows.ts'
import { prepareTexts, type TextStatements } from './statements.ts'
import { createPartSearch, parseTextCollection, type TextCollection, termTokens } from './texts-finding.ts'

export interface SqliteOperations extends RowOperations, TextOperations {}

/** Request to the worker thread. `open` only opens the file, as any other request does first; `close` is the last request. */
export interface WorkerRequest {
  readonly id: number
  readonly name: keyof SqliteOperations | 'open' | 'close'
  readonly values: readonly unknown[]
}

/** Message of the worker: an answer, a warning for the operator, or that it ends and another worker should take the rest. */
export type WorkerMessage =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failed: Pick<ResourceError, 'kind' | 'message' | 'detail'> }
  | { readonly warning: string }
  | { readonly leaving: true }

export function createOperations(database: Database): SqliteOperations {
  return { ...createRows(database), ...createTexts(database) }
}

/** Number of texts that one step of a removal removes. */
const batch = 200

/** Creates the operations on texts. The terms are in an FTS5 index that stores neither the texts nor the positions of terms. */
function createTexts(database: Database): TextOperations {
  const statements = prepareTexts(database)
  const { find, findOrMake } = createCollectionLookup(statements, parseTextCollection)
  const save = (home: TextCollection) =>
    statements.saveHome.run(home.revision + 1, home.texts, home.parts, home.length, home.bytes, home.id)
  const owners = createOwnerTexts(database, statements)
  const opening = randomInt(2 ** 48 - 1)

  const drop = (home: TextCollection, text: SqliteRow): TextCollection => {
    const id = Number(text.id)
    statements.dropTerms.run(id)
    statements.dropVectors.run(id)
    statements.dropParts.run(id)
    statements.dropText.run(id)
    return added(home, -1, -Number(text.parts), -Number(text.length), -Number(text.bytes))
  }
  const add = (home: TextCollection, text: CheckedText): TextCollection => {
    const length = text.parts.reduce((sum, part) => sum + part.length, 0)
    const bytes = textByteSize(text)
    const values = [...labelsOf(text), text.parts.length, length, bytes]
    statements.addText.run(home.id, ...values, sumOf([...values, text.value]), text.value)
    const id = statements.lastId()
    for (const [place, part] of text.parts.entries()) {
      statements.addPart.run(id, place, part.length, partSumOf(place, part.length, part.value), part.value)
      statements.addTerms.run(statements.lastId(), termTokens(home.id, part.terms))
    }
    return added(home, 1, text.parts.length, length, bytes)
  }

  return {
    textsPut: (name, texts) =>
      transaction(database, () => {
        let home = findOrMake(name)
        for (const text of texts) {
          const old = statements.old.get(home.id, text.key)
          if (old !== undefined) home = drop(home, old)
          home = add(home, text)
        }
        save(home)
      }),
    textsRemove: (name, keys) =>
      transaction(database, () => {
        let home = find(name)
        if (home === undefined) return false
        const rows = keys.flatMap((key) => {
          if (!key.endsWith('/')) return statements.old.all(home?.id ?? 0, key)
          return statements.below.all(home?.id ?? 0, key, prefixUpperBound(key) ?? '', batch)
        })
        const doomed = new Map(rows.map((text) => [Number(text.id), text]))
        const some = [...doomed.values()].slice(0, batch)
        if (some.length === 0) return false
        for (const text of some) home = drop(home, text)
        save(home)
        return true
      }),
    textsList: (name, { prefix = '', after = '', mimeType = null, limit }) =>
      statements.list
        .all(name, after, prefix, prefix === '' ? null : (prefixUpperBound(prefix) ?? null), limit, mimeType)
        .map(parseListRow),
    textsEntries: (name, after, limit) => {
      const jsonList = parseJsonList(statements.entries.get(find(name)?.id ?? 0, after, limit)?.entries)
      return (jsonList as readonly (readonly [number, string, string, number, number])[]).map(
        ([id, key, mount, parts, length]): TextEntry => ({ id, key, mount, parts, length }),
      )
    },
    textsIds: (name) => parseJsonList(statements.textIds.get(find(name)?.id ?? 0)?.ids) as readonly number[],
    textsMimeTypes: (name, among) => {
      const home = find(name)?.id ?? 0
      const types = statements.mimeTypes.all(home).map(({ mime }) => String(mime))
      if (among === undefined) return types
      const idsOfType = (mime: string) => parseJsonList(statements.idsOfType.get(home, mime)?.ids) as readonly number[]
      return types.filter((mime) => idsOfType(mime).some((id) => isInSet(among, id)))
    },
    ...createPartSearch(database, statements, find),
    textsRead: (name, ids) => {
      const home = find(name)
      if (home === undefined) return []
      const parts = statements.partsOf(JSON.stringify(ids)).map(parsePartRow)
      const texts = owners(parts.map(({ owner }) => owner))
      return parts.flatMap(({ owner, ...part }) => {
        const text = texts.get(owner)
        if (text?.home !== home.id) return []
        return [{ ...part, key: text.key, mount: text.mount, text: text.value, parts: text.parts }]
      })
    },
    textsSize: (name, model) => {
      const { id, ...size } = find(name) ?? { id: 0, revision: 0, texts: 0, parts: 0, length: 0, bytes: 0 }
      return { ...size, opening, embedded: Number(statements.embedded.get(id, model ?? null)?.n ?? 0) }
    },
    textsUnembedded: (name, model, after, limit) =>
      statements.unembedded.all(find(name)?.id ?? 0, model, after, limit).map((row) => {
        checkPart(row)
        return { id: Number(row.id), value: String(row.value) }
      }),
    textsEmbed: (name, model, vectors) =>
      transaction(database, () => {
        const home = find(name)
        if (home === undefined) return
        for (const { id, vector } of vectors) {
          if (statements.isOf.get(id, home.id) === undefined) continue
          statements.dropVector.run(id)
          statements.addVector.run(home.id, id, model, crc32(vector), vector)
        }
      }),
    textsVectors: (name, model, after, limit) =>
      statements.vectors.all(find(name)?.id ?? 0, model, after, limit).map(({ position, part, text, sum, vector }) => {
        if (!(vector instanceof Uint8Array) || crc32(vector) !== sum) throw storeError('damaged', 'a vector')
        return { order: Number(position), id: Number(part), text: Number(text), vector }
      }),
  }
}

function added(home: TextCollection, texts: number, parts: number, length: number, bytes: number): TextCollection {
  return {
    ...home,
    texts: home.texts + texts,
    parts: home.parts + parts,
    length: home.length + length,
    bytes: home.bytes + bytes,
  }
}

function labelsOf({ key, version, edition, labels }: CheckedText): readonly SqliteValue[] {
  const { mount, mimeType = null, audience = [], priority = null, modified = null } = labels
  return [key, version, edition, mount, mimeType, ` ${audience.join(' ')} `, priority, modified]
}

function sumOf(values: readonly SqliteValue[]): number {
  return crc32(JSON.stringify(values))
}

/** Checksum of a part. It covers only these columns. */
function partSumOf(place: number, length: number, value: string): number {
  return crc32(value, crc32(`${place},${length}`))
}

function checkPart({ place, length, sum, value }: SqliteRow): void {
  if (partSumOf(Number(place), Number(length), String(value)) !== sum) throw storeError('damaged', 'a part')
}

interface OwnerText {
  readonly home: number
  readonly key: string
  readonly mount: string
  readonly value: string
  readonly parts: number
}

/** Maximum number of cached texts. */
const mostOwners = 2000

/** Reads texts by their ids. They are cached until another connection writes. */
function createOwnerTexts(database: Database, statements: TextStatements) {
  const version = database.prepare('pragma data_version')
  const texts = new Map<number, OwnerText>()
  let bytes: SqliteValue | undefined
  return (ids: readonly number[]): ReadonlyMap<number, OwnerText> => {
    const now = version.get()?.data_version
    if (now !== bytes || texts.size > mostOwners) texts.clear()
    bytes = now
    const missing = [...new Set(ids)].filter((id) => !texts.has(id))
    for (const [id, home, sum, ...values] of missing.length === 0 ? [] : statements.textsOf(JSON.stringify(missing))) {
      if (sumOf(values) !== sum) throw storeError('damaged', 'a text')
      const [key, , , mount] = values
      const text = { home: Number(home), key: String(key), mount: String(mount), value: String(values.at(-1)) }
      texts.set(Number(id), { ...text, parts: Number(values[8]) })
    }
    return texts
  }
}

function parsePartRow([id, owner, place, length, sum, value]: readonly SqliteValue[]) {
  const part = { id: Number(id), place: Number(place), length: Number(length), value: String(value) }
  if (partSumOf(part.place, part.length, part.value) !== sum) throw storeError('damaged', 'a part')
  return { ...part, owner: Number(owner) }
}
