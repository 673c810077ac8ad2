import './text.css'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { splitFilterWords } from '../../../core/kit/matching.ts'
import { lineNumberAt, markedLinesAfterClick, navigate, parseLineRange, route } from '../state/route.ts'
import { escapeInvisible, langOf } from '../words/texts.ts'
import { Region } from './controls.tsx'
import { FindBar, FindInWhole, isFindBarOpen, useFinder } from './find.tsx'
import {
  addedLines,
  type HighlightedLine,
  type LineMatch,
  linesInChunk,
  matchesIn,
  maxLineLength,
  type PreviewPart,
  splitLines,
} from './model/lines.ts'
import { t } from './words.ts'
import { highlight } from './workers.ts'

interface Props {
  readonly text: string
  readonly language?: string | undefined
  readonly uri?: string
  readonly part?: PreviewPart | undefined
  readonly first?: number
  /** Whether the number of the first line is not known yet, so that no numbers are shown. */
  readonly isUnnumbered?: boolean
  readonly marked?: { readonly first: number; readonly last?: number } | undefined
  readonly wrap: boolean
  /** Whether the text is the end of a growing one, so that the view scrolls to the last line. */
  readonly isEnd?: boolean
  /** The time at which the text changed, so that new lines are marked. */
  readonly changedAt?: number | undefined
}

/** Maximum number of lines of a text that is rendered as a whole, so that the browser's own search and selection work. */
const mostAtOnce = 3000

/** A text with line numbers. Of a long text, the lines near the visible ones are rendered. */
export function TextView({
  text,
  uri,
  part,
  language,
  first = 1,
  isUnnumbered = false,
  marked: marks,
  wrap,
  isEnd = false,
  changedAt,
}: Props) {
  const box = useRef<HTMLElement>(null)
  const lines = useMemo(() => splitLines(text.replace(/^\ufeff/, '')), [text])
  const tokens = useTokens(lines, language)
  const changedLines = useChanged(lines, changedAt)
  const lang = useMemo(() => langOf(text.slice(0, 20_000)), [text])
  const chunks = Math.ceil(lines.length / linesInChunk)
  const near = useNear(box, chunks, lines.length <= mostAtOnce)
  const range = marks ?? parseLineRange(route.value.line)
  const scrollIndex = range === undefined ? -1 : range.first - first
  const current = useSignal(0)
  const { find, fault } = useFinder()
  const matches = useMemo(() => find?.(lines) ?? [], [lines, find])
  const searched = marks === undefined || find !== undefined ? undefined : route.value.q
  const byLine = useMemo(
    () =>
      groupedByLine(
        searched === undefined ? matches : splitFilterWords(searched).flatMap((word) => matchesIn(lines, word)),
      ),
    [matches, searched, lines],
  )
  const now = matches[Math.min(current.value, matches.length - 1)]
  useLayoutEffect(() => {
    if (now !== undefined) scrollTo(box.current, now.line)
  }, [now])
  useLayoutEffect(() => {
    if (isEnd && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [isEnd, lines])
  useLayoutEffect(() => {
    if (scrollIndex >= 0) scrollTo(box.current, scrollIndex)
  }, [scrollIndex])
  const isMarked = (index: number) =>
    range !== undefined && index + first >= range.first && index + first <= (range.last ?? Number.POSITIVE_INFINITY)
  const last = first + lines.length - (lines.at(-1) === '' ? 2 : 1)
  const digits = String(first + lines.length).length
  const view = (
    <Region
      box={box}
      onClick={(event) => {
        const number = lineNumberAt(event)
        if (number !== undefined && marks === undefined)
          navigate({ line: markedLinesAfterClick(number, event.shiftKey) })
      }}
      class={`text ${wrap ? 'wrap' : ''} ${language === 'diff' ? 'diff' : ''} ${isUnnumbered ? 'unnumbered' : ''}`}
      label={t('text')}
      lang={lang}
      style={{ '--digits': `${digits}ch` }}
    >
      <div class="chunks">
        {Array.from({ length: chunks }, (_, chunk) => {
          const start = chunk * linesInChunk
          const end = Math.min(start + linesInChunk, lines.length)
          if (!near.has(chunk))
            return <div key={chunk} class="chunk" data-chunk={chunk} style={{ height: `${(end - start) * 20}px` }} />
          return (
            <div key={chunk} class="chunk" data-chunk={chunk}>
              {lines.slice(start, end).map((line, offset) => (
                <TextLine
                  key={offset}
                  number={first + start + offset}
                  line={line}
                  tokens={tokens?.[start + offset]}
                  matches={byLine.get(start + offset)}
                  now={now}
                  style={`${isMarked(start + offset) ? 'marked' : ''} ${changedLines.has(start + offset) ? 'fresh' : ''}`}
                />
              ))}
            </div>
          )
        })}
      </div>
    </Region>
  )
  if (!isFindBarOpen.value) return view
  return (
    <>
      <FindBar count={matches.length} current={current} fault={fault} lines={[first, last]} />
      {uri === undefined ? null : (
        <FindInWhole uri={uri} part={part} first={first} last={last} count={matches.length} />
      )}
      {view}
    </>
  )
}

interface LineProps {
  readonly number: number
  readonly line: string
  readonly tokens: HighlightedLine | undefined
  readonly matches: readonly LineMatch[] | undefined
  readonly now: LineMatch | undefined
  readonly style: string
}

function TextLine({ number, line, tokens, matches, now, style }: LineProps) {
  const isLong = line.length > maxLineLength
  return (
    <div class={`line ${style}`} data-n={number}>
      <code>
        {isLong ? (
          <>
            {escapeInvisible(line.slice(0, maxLineLength))}
            <em class="cut">{t('lineCut', { count: line.length - maxLineLength })}</em>
          </>
        ) : (
          <Pieces {...{ line, tokens, matches, now }} />
        )}
      </code>
    </div>
  )
}

/** A line, highlighted if possible, with the matches marked. */
function Pieces({ line, tokens, matches = [], now }: Pick<LineProps, 'line' | 'tokens' | 'matches' | 'now'>) {
  if (line === '') return <>{'\n'}</>
  let at = 0
  return (
    <>
      {(tokens ?? [[line, '']]).map(([piece, kind], index) => {
        const start = at
        at += piece.length
        const nodes = markedIn(line, start, at, matches, now)
        return kind === '' ? (
          nodes
        ) : (
          <span key={index} class={kind}>
            {nodes}
          </span>
        )
      })}
    </>
  )
}

/** A part of a line with the matches in it marked. A match may begin or end outside. */
function markedIn(
  line: string,
  start: number,
  end: number,
  matches: readonly LineMatch[],
  now: LineMatch | undefined,
): ComponentChildren {
  let at = start
  const pieces: ComponentChildren[] = []
  for (const match of matches) {
    if (match.end <= at || match.start >= end) continue
    const [from, to] = [Math.max(at, match.start), Math.min(end, match.end)]
    pieces.push(
      escapeInvisible(line.slice(at, from)),
      <mark key={from} class={match === now ? 'found-now' : ''}>
        {escapeInvisible(line.slice(from, to))}
      </mark>,
    )
    at = to
  }
  return [...pieces, escapeInvisible(line.slice(at, end))]
}

/** Returns the lines as highlighted pieces. `undefined`: they are not ready, or the text stays plain. */
function useTokens(lines: readonly string[], language: string | undefined): readonly HighlightedLine[] | undefined {
  const [matchState, setFound] = useState<{ of: readonly string[]; tokens: readonly HighlightedLine[] | undefined }>()
  useEffect(() => {
    let isLeft = false
    if (language !== undefined && lines.every((line) => line.length <= maxLineLength))
      void highlight(lines.join('\n'), language).then((tokens) => {
        if (!isLeft) setFound({ of: lines, tokens })
      })
    return () => {
      isLeft = true
    }
  }, [lines, language])
  return matchState?.of === lines ? matchState.tokens : undefined
}

/** Indexes of the lines that the last change added. Empty again after six seconds. */
function useChanged(lines: readonly string[], changedAt: number | undefined): ReadonlySet<number> {
  const before = useRef(lines)
  const lastChange = useRef(changedAt)
  const [changedLines, setChanged] = useState<ReadonlySet<number>>(new Set())
  useEffect(() => {
    const last = before.current
    if (last === lines) return
    before.current = lines
    const isChange = lastChange.current !== changedAt
    lastChange.current = changedAt
    if (!isChange) return
    setChanged(addedLines(last, lines))
    const timer = setTimeout(() => setChanged(new Set()), 6000)
    return () => clearTimeout(timer)
  }, [lines])
  return changedLines
}

/** Indexes of the chunks near the visible lines. */
function useNear(box: { readonly current: HTMLElement | null }, chunks: number, isAll: boolean): ReadonlySet<number> {
  const [near, setNear] = useState<ReadonlySet<number>>(new Set([0, 1]))
  useEffect(() => {
    const element = box.current
    if (isAll || element === null) return
    const observer = new IntersectionObserver(
      (entries) =>
        setNear((before) => {
          const next = new Set(before)
          for (const { target, isIntersecting } of entries) {
            const chunk = Number((target as HTMLElement).dataset.chunk)
            if (isIntersecting) next.add(chunk)
            else next.delete(chunk)
          }
          return next
        }),
      { root: element, rootMargin: '1500px 0px' },
    )
    for (const chunk of element.querySelectorAll('.chunk')) observer.observe(chunk)
    return () => observer.disconnect()
  }, [box, chunks, isAll])
  return useMemo(
    () => (isAll ? new Set(Array.from({ length: chunks }, (_, index) => index)) : near),
    [isAll, chunks, near],
  )
}

function groupedByLine(matches: readonly LineMatch[]): ReadonlyMap<number, readonly LineMatch[]> {
  const lines = new Map<number, LineMatch[]>()
  for (const match of matches) {
    const own = lines.get(match.line)
    if (own === undefined) lines.set(match.line, [match])
    else own.push(match)
  }
  for (const own of lines.values()) own.sort((a, b) => a.start - b.start)
  return lines
}

function scrollTo(box: HTMLElement | null, index: number): void {
  if (box === null) return
  const chunk = box.querySelector<HTMLElement>(`[data-chunk="${Math.floor(index / linesInChunk)}"]`)
  if (chunk === null) return
  const line = chunk.querySelector<HTMLElement>(`.line:nth-child(${(index % linesInChunk) + 1})`)
  const top = line === null ? chunk.offsetTop + (index % linesInChunk) * 20 : line.offsetTop
  box.scrollTop = Math.max(0, top - box.clientHeight / 4)
}
