import './find.css'
import { type Signal, signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { defined, objectsIn } from '../../../core/kit/object.ts'
import { Button } from '../shell/fields.tsx'
import { errorSentence } from '../state/announce.ts'
import { linkTo, navigate } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, formatNumber } from '../words/texts.ts'
import { Region, Toggle } from './controls.tsx'
import { uriWithoutPart } from './load.ts'
import { type LineMatch, matchesIn, maxMatches, type PreviewPart } from './model/lines.ts'
import { withPart } from './model/reference.ts'
import { t } from './words.ts'

export const isFindBarOpen = signal(false)
/** The searched text. It stays from one document to the next. */
export const searchedText = signal('')
/** Whether the searched text is a regular expression. */
const isPattern = signal(false)

/** Lets Ctrl F or Cmd F open the find bar if there is a text, because the browser finds only the drawn part of a text. */
export function useFindKey(hasText: boolean): void {
  useEffect(() => {
    if (!hasText) return
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'f' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      isFindBarOpen.value = true
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [hasText])
}

type Finder = (lines: readonly string[]) => readonly LineMatch[]

/**
 * Returns the function that finds the searched text, and in `fault` why a pattern is invalid. `find` is undefined while the bar is closed,
 * the text is empty, or the pattern is not compiled.
 */
export function useFinder(): { readonly find: Finder | undefined; readonly fault: string | undefined } {
  const [patterned, setPatterned] = useState<{ of: string; find?: Finder; fault?: string }>()
  const [isOpen, text, asPattern] = [isFindBarOpen.value, searchedText.value, isPattern.value]
  useEffect(() => {
    if (!asPattern || text === '') return
    let isLeft = false
    // The library is loaded with the first pattern.
    void import('./model/pattern.ts').then(({ compileFinder }) => {
      if (!isLeft) setPatterned({ of: text, ...compileFinder(text) })
    })
    return () => {
      isLeft = true
    }
  }, [asPattern, text])
  return useMemo(() => {
    if (!isOpen || text === '') return { find: undefined, fault: undefined }
    if (!asPattern) return { find: (lines) => matchesIn(lines, text), fault: undefined }
    return patterned?.of === text
      ? { find: patterned.find, fault: patterned.fault }
      : { find: undefined, fault: undefined }
  }, [isOpen, text, asPattern, patterned])
}

interface FindBarProps {
  readonly count: number
  readonly current: Signal<number>
  readonly fault?: string | undefined
  /** The numbers of the first and the last loaded line, to which the bar can go. */
  readonly lines?: readonly [first: number, last: number]
  readonly children?: ComponentChildren
}

/** The bar that finds a text in the shown document, and goes to a line by its number. */
export function FindBar({ count, current, fault, lines, children }: FindBarProps) {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    field.current?.focus()
    field.current?.select()
  }, [])
  const step = (by: number) => {
    if (count > 0) current.value = (current.value + by + count) % count
  }
  const close = () => {
    isFindBarOpen.value = false
    document.getElementById('middle')?.focus()
  }
  const summary = t(count === maxMatches ? 'findMany' : 'findCount', {
    at: Math.min(current.value, count - 1) + 1,
    count,
  })
  return (
    <search class="preview-bar thin find-bar">
      <input
        ref={field}
        type="search"
        class="field"
        aria-label={t('findIn')}
        placeholder={t('findIn')}
        value={searchedText.value}
        spellcheck={false}
        autoComplete="off"
        onInput={({ currentTarget }) => {
          searchedText.value = currentTarget.value
          current.value = 0
        }}
        onKeyDown={(event) => {
          if (event.isComposing || event.keyCode === 229) return
          if (event.key === 'Enter') step(event.shiftKey ? -1 : 1)
          else if (event.key === 'Escape') close()
          else return
          event.preventDefault()
          event.stopPropagation()
        }}
      />
      <Toggle name={t('findPattern')} sign=".*" state={isPattern} />
      <span class="find-bar-count" role="status">
        {searchedText.value === '' ? '' : (fault ?? (count === 0 ? t('findNone') : summary))}
      </span>
      <Button name={t('findBefore')} icon="up" disabled={count === 0} onClick={() => step(-1)} />
      <Button name={t('findNext')} icon="down" disabled={count === 0} onClick={() => step(1)} />
      {children}
      {lines === undefined ? null : <GoToLine lines={lines} />}
      <span class="spring" />
      <Button name={t('findClose')} icon="close" onClick={close} />
    </search>
  )
}

function GoToLine({ lines: [first, last] }: { readonly lines: readonly [first: number, last: number] }) {
  return (
    <label>
      {t('goToLine')}{' '}
      <input
        type="number"
        class="field find-bar-line"
        min={first}
        max={last}
        onChange={({ currentTarget }) => {
          const line = Math.round(currentTarget.valueAsNumber)
          if (line >= first && line <= last) navigate({ line: String(line) })
        }}
      />
    </label>
  )
}

/** The tool of the server that finds lines of a resource, also those that are not loaded. */
const tool = 'search_in_resource'

export function canFindInWhole(): boolean {
  return requireConnection().tools.has(tool)
}

/** Maximum number of calls to count the lines of a resource. */
const maxAnswers = 30

export async function countLines(uri: string, signal: AbortSignal): Promise<number | undefined> {
  const args = { uri, pattern: '[^\\x00-\\x{10FFFF}]', limit: 1 }
  let cursor: string | undefined
  for (let answers = 0; answers < maxAnswers; answers++) {
    const { lastLine, next } = wholeIn(
      await requireConnection().call(tool, { ...args, ...defined({ cursor }) }, signal),
    )
    if (next === undefined) return lastLine
    cursor = next
  }
  return undefined
}

interface WholeAnswer {
  readonly uri: string
  readonly matches: readonly {
    readonly line: number
    readonly text: string
    readonly start: number
    readonly end: number
  }[]
  readonly lastLine: number
  /** The cursor for the rest. */
  readonly next?: string
}

/** Maximum number of matching lines that a search lists, and that each "Show more" adds. */
const maxListed = 200

/** The answer for a whole resource. A signal of the module keeps the answer while the user opens its hits. */
const whole = signal<{ readonly key: string; readonly answer?: WholeAnswer; readonly error?: unknown }>({ key: '' })

interface WholeProps {
  readonly uri: string
  /** The loaded part. */
  readonly part: PreviewPart | undefined
  readonly first: number
  readonly last: number
  readonly count: number
}

/** Searches a text, of which the page has loaded only a part, as a whole on the server, and lists the lines that match. */
export function FindInWhole({ uri, part, first, last, count }: WholeProps) {
  /** The number of the last line that was searched; undefined while no search runs. */
  const searched = useSignal<number | undefined>(undefined)
  const running = useRef<AbortController>(undefined)
  const key = JSON.stringify([uriWithoutPart(uri), searchedText.value, isPattern.value])
  // New words end the search for the previous ones.
  useEffect(() => () => running.current?.abort(), [key])
  const isPartial = part !== undefined && (part.next !== undefined || first > 1 || /[?&]lines=/.test(uri))
  if (!isPartial || searchedText.value === '' || !canFindInWhole()) return null
  const { answer, error } = whole.value.key === key ? whole.value : {}
  const search = async (before?: WholeAnswer) => {
    const controller = new AbortController()
    running.current = controller
    searched.value = before?.lastLine ?? 0
    const args = {
      uri: uriWithoutPart(uri),
      pattern: searchedText.value,
      literal: !isPattern.value,
      ignore_case: true,
    }
    const most = (before?.matches.length ?? 0) + maxListed
    let answer = before
    try {
      do {
        const rest = { limit: most - (answer?.matches.length ?? 0), ...defined({ cursor: answer?.next }) }
        const start = answer?.lastLine ?? 0
        const onProgress = ({ progress, message }: Readonly<Record<string, unknown>>) => {
          // Progress without a message counts seconds, not lines.
          if (message !== undefined) searched.value = Math.max(start, Number(progress))
        }
        answer = appendMatches(
          answer,
          wholeIn(await requireConnection().call(tool, { ...args, ...rest }, controller.signal, onProgress)),
        )
        whole.value = { key, answer: answer }
        searched.value = answer.lastLine
      } while (answer.next !== undefined && answer.matches.length < most)
    } catch (fault) {
      if (!controller.signal.aborted) whole.value = { key, error: fault }
    }
    if (running.current === controller) searched.value = undefined
  }
  const isBusy = searched.value !== undefined
  const total = part.lines === undefined ? undefined : formatNumber(part.lines)
  const progress = isBusy ? (
    <>
      {t(total === undefined ? 'searchedTo' : 'searchedToOf', {
        ...{ lines: formatNumber(searched.value ?? 0), total: total ?? '' },
      })}{' '}
      <Button name={t('searchStop')} onClick={() => running.current?.abort()} />
    </>
  ) : null
  return (
    <section class="find-whole" aria-label={t('findWhole')} aria-busy={isBusy}>
      {answer === undefined ? (
        <p role="status">
          {progress ?? (
            <>
              <span>
                {t(count === 0 ? 'findNotIn' : 'findIsIn', { first: formatNumber(first), last: formatNumber(last) })}
              </span>{' '}
              <Button
                name={total === undefined ? t('findWhole') : t('findWholeOf', { lines: total })}
                onClick={() => void search()}
              />
            </>
          )}
          {error === undefined || isBusy ? null : <span class="bad"> {errorSentence(error)}</span>}
        </p>
      ) : (
        <>
          <p role="status">
            {answer.matches.length > 0
              ? t('wholeCount', { count: answer.matches.length, lines: formatNumber(answer.lastLine) })
              : isBusy
                ? null
                : t(answer.next === undefined ? 'wholeNone' : 'wholeNoneYet', {
                    lines: formatNumber(answer.lastLine),
                  })}{' '}
            {progress ??
              (answer.next === undefined ? null : (
                <Button
                  name={t(answer.matches.length === 0 ? 'searchOn' : 'showMore')}
                  onClick={() => void search(answer)}
                />
              ))}
          </p>
          <ol>
            {answer.matches.map(({ line, text, start, end }) => (
              <li key={line}>
                <a href={linkTo({ uri: withPart(answer.uri, `lines=${line}`), line: undefined })}>
                  {formatNumber(line)}
                </a>
                <code>
                  {escapeInvisible(text.slice(0, start))}
                  <mark>{escapeInvisible(text.slice(start, end))}</mark>
                  {escapeInvisible(text.slice(end))}
                </code>
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  )
}

function wholeIn({ uri, matches, lastLine, next }: Readonly<Record<string, unknown>>): WholeAnswer {
  return {
    uri: String(uri),
    matches: objectsIn(matches).map(({ line, text, start, end }) => ({
      ...{ line: Number(line), text: String(text), start: Number(start), end: Number(end) },
    })),
    lastLine: Number(lastLine),
    ...(typeof next === 'string' ? { next } : {}),
  }
}

function appendMatches(before: WholeAnswer | undefined, after: WholeAnswer): WholeAnswer {
  return before === undefined ? after : { ...after, matches: [...before.matches, ...after.matches] }
}

interface FoundRegionProps {
  readonly class: string
  readonly label: string
  readonly box?: { current: HTMLElement | null }
  readonly children: ComponentChildren
}

/** A rendered document that scrolls, and that Ctrl F searches. The browser marks the matches, so the document itself is not changed. */
export function SearchableRegion({ box: parts, children, ...named }: FoundRegionProps) {
  const own = useRef<HTMLElement>(null)
  const box = parts ?? own
  const current = useSignal(0)
  const [ranges, setRanges] = useState<readonly Range[]>([])
  const { find, fault } = useFinder()
  useEffect(() => {
    const element = box.current
    if (element === null || find === undefined) {
      setRanges([])
      return
    }
    const look = () => setRanges(rangesIn(element, find))
    look()
    // Search again when parts of the document are drawn later.
    const observer = new MutationObserver(look)
    observer.observe(element, { childList: true, subtree: true })
    return () => observer.disconnect()
  }, [find])
  const now = ranges[Math.min(current.value, ranges.length - 1)]
  useLayoutEffect(() => {
    const { highlights } = CSS
    if (highlights === undefined) return
    highlights.set('found', new Highlight(...ranges))
    highlights.set('found-now', new Highlight(...(now === undefined ? [] : [now])))
    now?.startContainer.parentElement?.scrollIntoView({ block: 'center' })
    return () => {
      highlights.delete('found')
      highlights.delete('found-now')
    }
  }, [ranges, now])
  return (
    <div class="column found-column">
      {isFindBarOpen.value ? <FindBar count={ranges.length} current={current} fault={fault} /> : null}
      <Region box={box} {...named}>
        {children}
      </Region>
    </div>
  )
}

const blocks =
  'p, li, h1, h2, h3, h4, h5, h6, td, th, pre, dt, dd, blockquote, div, summary, figcaption, section, article'

/** The matches in the texts of an element. A match may extend over inline elements, but not from one block into the next. */
function rangesIn(element: HTMLElement, find: Finder): readonly Range[] {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  const groups: { block: Element | null; nodes: Text[] }[] = []
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const block = node.parentElement?.closest(blocks) ?? null
    const last = groups.at(-1)
    if (last?.block === block) last.nodes.push(node as Text)
    else groups.push({ block, nodes: [node as Text] })
  }
  return find(groups.map(({ nodes }) => nodes.map(({ data }) => data).join(''))).map(({ line, start, end }) => {
    const range = document.createRange()
    const nodes = groups[line]?.nodes ?? []
    range.setStart(...placeIn(nodes, start, false))
    range.setEnd(...placeIn(nodes, end, true))
    return range
  })
}

function placeIn(nodes: readonly Text[], offset: number, isEnd: boolean): [Node, number] {
  let offset0 = offset
  for (const node of nodes) {
    if (offset0 < node.length || (isEnd && offset0 === node.length)) return [node, offset0]
    offset0 -= node.length
  }
  const last = nodes.at(-1) ?? document.body
  return [last, last instanceof Text ? last.length : 0]
}
