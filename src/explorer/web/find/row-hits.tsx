import { useEffect, useState } from 'preact/hooks'
import type { FoundHit } from '../../../core/search-answer.ts'
import { isPicked, toggleFile } from '../basket/picked.ts'
import { databaseRows, keepDigits, type Rows } from '../preview/model/rows.ts'
import { Button } from '../shell/fields.tsx'
import { previewedHit, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible } from '../words/texts.ts'
import { documentResource, HitLink } from './hit-link.tsx'
import { cellExcerpt, MarkedWords, Snippet, shownColumns, snippetMatches } from './snippet.tsx'
import { t } from './words.ts'

/** Maximum number of rows that are shown for a hit in a table without a key: such a hit is a page of rows. */
const maxPageRows = 4

/** The rows of one hit: the head, and the cells of each row. */
interface HitRows {
  readonly hit: FoundHit
  readonly head: readonly string[]
  readonly rows: Rows
}

/** The hits in one table of a database, as a table. A hit whose rows are not read is shown as text. */
export function RowHits({ hits }: { readonly hits: readonly FoundHit[] }) {
  const words = [...new Set(hits.flatMap(snippetMatches))]
  const rowsByUri = useHitRows(hits, words)
  const [first] = rowsByUri.values()
  const bestHits = hits.flatMap((hit) => {
    const own = rowsByUri.get(hit.uri)
    return own === undefined || own.head.join('\n') !== first?.head.join('\n') ? [] : [own]
  })
  const rest = hits.filter((hit) => !bestHits.some((own) => own.hit === hit))
  const columns = shownColumns(
    first?.head ?? [],
    bestHits.flatMap(({ rows }) => rows),
    words,
  )
  return (
    <>
      {first === undefined ? null : (
        <div class="hit hit-table">
          <table>
            <thead>
              <tr>
                <td />
                {columns.map((column) => (
                  <th key={column} scope="col">
                    {escapeInvisible(first.head[column] ?? '')}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {bestHits.flatMap(({ hit, rows }) =>
                rows.map((row, index) => (
                  <Row key={`${hit.uri} ${index}`} {...{ hit, row, columns, words }} isFirst={index === 0} />
                )),
              )}
            </tbody>
          </table>
        </div>
      )}
      {rest.map((hit) => (
        <div key={hit.uri} class={isOpen(hit) ? 'hit hit-open' : 'hit'}>
          <HitLink uri={hit.uri} isOpen={isOpen(hit)} onToggle={() => toggleFile(documentResource(hit))}>
            {escapeInvisible(hit.title ?? hit.uri)}
          </HitLink>
          <Snippet hit={hit} language={undefined} />
        </div>
      ))}
    </>
  )
}

const isOpen = ({ uri }: FoundHit) => (previewedHit.value ?? route.value.uri) === uri

interface RowProps {
  readonly hit: FoundHit
  readonly row: readonly string[]
  /** Indexes of the shown columns. */
  readonly columns: readonly number[]
  readonly words: readonly string[]
  /** Whether this is the first row of the hit, which has the link to the hit and the button for the basket. */
  readonly isFirst: boolean
}

function Row({ hit, row, columns, words, isFirst }: RowProps) {
  const [head = 0, ...others] = columns
  const cellOf = (column: number) => <MarkedWords text={cellExcerpt(row[column] ?? '', words)} words={words} />
  const first = row[head] ?? ''
  const picked = isPicked(hit.document)
  return (
    <tr class={isFirst && isOpen(hit) ? 'hit-open' : undefined}>
      <td class="hit-pick">
        {isFirst ? (
          <Button
            name={t(picked ? 'unpickRow' : 'pickRow', { name: escapeInvisible(hit.title ?? first) })}
            icon={picked ? 'tick' : 'basket'}
            class="button-icon"
            aria-pressed={picked}
            onClick={() => toggleFile(documentResource(hit))}
          />
        ) : null}
      </td>
      <th scope="row">
        {isFirst ? (
          <HitLink uri={hit.uri} isOpen={isOpen(hit)} onToggle={() => toggleFile(documentResource(hit))}>
            {first === '' ? escapeInvisible(hit.title ?? '·') : cellOf(head)}
          </HitLink>
        ) : (
          cellOf(head)
        )}
      </th>
      {others.map((column) => (
        <td key={column}>{cellOf(column)}</td>
      ))}
    </tr>
  )
}

/** Returns the rows of hits by the URI of the hit, once they are read. Of a page of rows, the rows with one of the words are kept. */
function useHitRows(hits: readonly FoundHit[], words: readonly string[]): ReadonlyMap<string, HitRows> {
  const [rowsByUri, setRead] = useState<ReadonlyMap<string, HitRows>>(new Map())
  const key = hits.map(({ uri }) => uri).join(' ')
  useEffect(() => {
    const controller = new AbortController()
    const { view } = requireConnection()
    const readOne = async (hit: FoundHit): Promise<HitRows | undefined> => {
      const { contents } = await view.read(hit.uri, { signal: controller.signal })
      const [content] = contents
      const [head, ...rows] = databaseRows(
        JSON.parse(content !== undefined && 'text' in content ? content.text : '', keepDigits),
      )
      if (head === undefined || head.length === 0 || rows.length === 0) return undefined
      const isFound = (row: readonly string[]) => words.some((word) => row.join('\n').toLowerCase().includes(word))
      const matches = rows.length === 1 ? rows : rows.filter(isFound).slice(0, maxPageRows)
      return matches.length === 0 ? undefined : { hit, head, rows: matches }
    }
    void Promise.all(hits.map((hit) => readOne(hit).catch(() => undefined))).then((all) => {
      if (controller.signal.aborted) return
      setRead(new Map(all.flatMap((one) => (one === undefined ? [] : [[one.hit.uri, one] as const]))))
    })
    return () => controller.abort()
  }, [key])
  return rowsByUri
}
