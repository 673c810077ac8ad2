import type { Analysis, Vote } from './record.ts'

export const reportLanguages = ['ja', 'en'] as const
export type ReportLanguage = (typeof reportLanguages)[number]

const words = {
  en: {
    title: 'Wall-bounce analysis',
    prompt: 'Question',
    consensus: 'Consensus',
    reasoning: 'Reasoning',
    votes: 'Votes',
    facts: 'Facts',
    taskType: 'Task type',
    taskTypes: { basic: 'basic', premium: 'premium', critical: 'critical' },
    rounds: 'Rounds',
    confidence: 'Confidence',
    agreement: 'Agreement',
    thresholds: 'Thresholds',
    met: 'met',
    missed: '**not met**',
    least: (what: string, value: string) => `${what.toLowerCase()} at least ${value}`,
    totalCost: 'Total cost',
    created: 'Created',
    expires: 'Expires',
    never: 'never',
    tags: 'Tags',
    provider: 'Provider',
    model: 'Model',
    tokenCount: 'Tokens',
    cost: 'Cost',
    duration: 'Duration',
    seconds: (value: string) => `${value} s`,
    error: 'Error',
    nothing: 'No answer.',
    colon: ': ',
  },
  ja: {
    title: '壁打ち分析',
    prompt: '質問',
    consensus: '合意',
    reasoning: '根拠',
    votes: '各モデルの回答',
    facts: '概要',
    taskType: 'タスク種別',
    taskTypes: { basic: '基本', premium: 'プレミアム', critical: '重要' },
    rounds: 'ラウンド数',
    confidence: '信頼度',
    agreement: '一致度',
    thresholds: 'しきい値',
    met: '達成',
    missed: '**未達**',
    least: (what: string, value: string) => `${what} ${value} 以上`,
    totalCost: '総コスト',
    created: '作成日時',
    expires: '有効期限',
    never: 'なし',
    tags: 'タグ',
    provider: 'プロバイダー',
    model: 'モデル',
    tokenCount: 'トークン数',
    cost: 'コスト',
    duration: '所要時間',
    seconds: (value: string) => `${value} 秒`,
    error: 'エラー',
    nothing: '回答なし。',
    colon: '：',
  },
}

type Words = (typeof words)[ReportLanguage]

export function reportLanguageOf(language: string): ReportLanguage {
  return /^ja(?:-|$)/i.test(language) ? 'ja' : 'en'
}

/**
 * Formats an analysis as Markdown, for people: the question, the consensus, facts and votes. Text of models is quoted, so that its
 * headings and tables do not become part of the report; names are escaped.
 */
export function formatReport(analysis: Analysis, language: ReportLanguage): string {
  const { [language]: say } = words
  const { prompt, consensus, votes } = analysis
  const sections = [
    `# ${say.title}`,
    `## ${say.prompt}`,
    quote(prompt),
    `## ${say.consensus}`,
    quote(consensus.content),
    ...(consensus.reasoning === undefined ? [] : [`### ${say.reasoning}`, quote(consensus.reasoning)]),
    `## ${say.facts}`,
    formatAnalysisFacts(analysis, say),
    `## ${say.votes}`,
    formatVoteTable(votes, say),
    ...votes.flatMap((vote) => voteOf(vote, say)),
  ]
  return `${sections.join('\n\n')}\n`
}

function formatAnalysisFacts(analysis: Analysis, say: Words): string {
  const { thresholds, consensus, expires, tags } = analysis
  const thresholdLines = (['confidence', 'agreement'] as const).flatMap((what) => {
    const value = thresholds[what]
    return value === undefined ? [] : [say.least(say[what], fraction(value))]
  })
  const facts: readonly (readonly [string, string])[] = [
    [say.confidence, fraction(consensus.confidence)],
    [say.thresholds, [thresholds.met ? say.met : say.missed, ...thresholdLines].join(' — ')],
    [say.taskType, say.taskTypes[analysis.taskType]],
    [say.rounds, String(analysis.rounds)],
    [say.totalCost, dollars(analysis.totalCost)],
    [say.created, analysis.created],
    [say.expires, expires ?? say.never],
    ...(tags.length === 0 ? [] : [[say.tags, tags.map(escapeMarkdown).join(', ')] as const]),
    ['ID', `\`${analysis.id}\``],
  ]
  return facts.map(([name, value]) => `- ${name}${say.colon}${value}`).join('\n')
}

function formatVoteTable(votes: readonly Vote[], say: Words): string {
  const head = [say.provider, say.model, say.confidence, say.agreement, say.tokenCount, say.cost, say.duration]
  const rows = votes.map(({ provider, model, confidence, agreement, tokens, cost, duration }) => [
    escapeMarkdown(provider),
    escapeMarkdown(model),
    optional(confidence, fraction),
    optional(agreement, fraction),
    optional(tokens, String),
    optional(cost, dollars),
    optional(duration, (ms) => say.seconds(rounded(ms / 1000, 2))),
  ])
  const lines = [head, head.map((_, at) => (at < 2 ? '---' : '--:')), ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function voteOf({ provider, content, error }: Vote, say: Words): readonly string[] {
  const errorLines = error === undefined ? [] : [`**${say.error}**`, quote(error)]
  const answered = content === undefined || content.trim() === '' ? [] : [quote(content)]
  const parts = [...errorLines, ...answered]
  return [`### ${escapeMarkdown(provider)}`, ...(parts.length === 0 ? [say.nothing] : parts)]
}

function quote(text: string): string {
  return text
    .trimEnd()
    .split(/\r\n|[\r\n\u2028\u2029]/)
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n')
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]<>()#|!~]/g, '\\$&')
}

function optional(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '–' : format(value)
}

const fraction = (value: number): string => rounded(value, 3)
const dollars = (value: number): string => `$${rounded(value, 6)}`

function rounded(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)))
}
