import { describe, expect, test } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import { maxQueryLength, parsePromql } from '../../src/providers/metrics/promql.ts'

const metricsOf = (query: string) => parsePromql(query).metrics

function refusalOf(query: string): string {
  try {
    const { metrics } = parsePromql(query)
    return `understood as ${metrics.join(' ')}`
  } catch (error) {
    if (!isResourceError(error, 'invalid')) throw error
    expect(error.detail).toMatchObject({ reason: 'parameter', parameter: 'query' })
    return 'refused'
  }
}

describe('the metrics of a query', () => {
  // Most are examples of https://prometheus.io/docs/prometheus/latest/querying/ (basics, operators, functions, examples).
  test.each<[string, ...string[]]>([
    ['http_requests_total', 'http_requests_total'],
    ['http_requests_total{job="prometheus",group="canary"}', 'http_requests_total'],
    ['http_requests_total{environment=~"staging|testing|development",method!="GET"}', 'http_requests_total'],
    ['http_requests_total{replica!~"rep-a",}', 'http_requests_total'],
    ['foo{}', 'foo'],
    ['{__name__="http_requests_total"}', 'http_requests_total'],
    ['{"__name__"="http.requests",job="x"}', 'http.requests'],
    ['{"my.dotted.metric", region="east"}', 'my.dotted.metric'],
    ['{region="east", "my.dotted.metric"}', 'my.dotted.metric'],
    ['{"foo"}', 'foo'],
    ["{'foo'}", 'foo'],
    ['{`foo`}', 'foo'],
    ['foo{"label.with.dots"="x"}', 'foo'],
    ['http_requests_total{job="prometheus"}[5m]', 'http_requests_total'],
    ['http_requests_total offset 5m', 'http_requests_total'],
    ['sum(http_requests_total{method="GET"} offset 5m)', 'http_requests_total'],
    ['rate(http_requests_total[5m] offset -1w)', 'http_requests_total'],
    ['foo offset -5m', 'foo'],
    ['foo OFFSET 1h30m', 'foo'],
    ['http_requests_total @ 1609746000', 'http_requests_total'],
    ['foo @ start()', 'foo'],
    ['foo @ end() offset 5m', 'foo'],
    ['foo offset 5m @ -1.5e3', 'foo'],
    ['rate(http_requests_total[5m] @ 1609746000)', 'http_requests_total'],
    ['rate(http_requests_total[5m])[30m:1m]', 'http_requests_total'],
    ['max_over_time(deriv(rate(distance_covered_total[5s])[30s:5s])[10m:])', 'distance_covered_total'],
    ['max_over_time(rate(a[5m])[1h:5m] @ end() offset 1d)', 'a'],
    ['foo[ 1h : 5m ]', 'foo'],
    ['foo[300]', 'foo'],
    ['sum by (job) (rate(http_requests_total[5m]))', 'http_requests_total'],
    ['sum(rate(a[5m])) by (job, instance,)', 'a'],
    ['sum without (instance) (a)', 'a'],
    ['SUM BY(job)(a)', 'a'],
    ['sum by ("a.b", on) (foo)', 'foo'],
    ['sum by () (foo)', 'foo'],
    ['topk(5, sum by (app) (a)) or bottomk(3, b)', 'a', 'b'],
    ['count_values("version", build_version)', 'build_version'],
    ['quantile(0.9, a)', 'a'],
    ['histogram_quantile(0.9, sum by (le) (rate(h_bucket[10m])))', 'h_bucket'],
    ['(a - b) / 1024 / 1024', 'a', 'b'],
    ['a / on(instance, job) group_left(version) b', 'a', 'b'],
    ['a:rate5m{code="500"} / ignoring(code) a:rate5m', 'a:rate5m', 'a:rate5m'],
    ['a * on (x) group_right () b', 'a', 'b'],
    ['a * on (x) group_left b', 'a', 'b'],
    ['a > bool 0', 'a'],
    ['a == bool on(x) b', 'a', 'b'],
    ['a != b <= c >= d < e > f', 'a', 'b', 'c', 'd', 'e', 'f'],
    ['a and b or c unless d atan2 e', 'a', 'b', 'c', 'd', 'e'],
    ['a and on() b', 'a', 'b'],
    ['2 ^ 3 ^ -a % 0x1F', 'a'],
    ['- - +a', 'a'],
    ['a + Inf - -inf * NaN / 1_000 + .5 + 1. + 1e-3 + 5m', 'a'],
    ['vector(1)'],
    ['time()'],
    ['"a text with foo and {bar}"'],
    ['label_replace(up{job="a"}, "__name__", "$1", "x", "(.*)")', 'up'],
    ['label_join(up, "__name__", ",", "a")', 'up'],
    ['absent(nonexistent{job="myjob"})', 'nonexistent'],
    ['absent_over_time(sum(a{job="j"})[1h:])', 'a'],
    ['day_of_week()'],
    ['job:foo:sum', 'job:foo:sum'],
    [':foo', ':foo'],
    ['sum', 'sum'],
    ['sum{x="1"} + by + offset offset 5m', 'sum', 'by', 'offset'],
    ['sum(sum)', 'sum'],
    ['and and or or unless', 'and', 'or', 'unless'],
    ['count offset 5m', 'count'],
    ['start @ start()', 'start'],
    ['rate + rate', 'rate', 'rate'],
    ['foo{by="x",on="y",sum="z",inf="0"}', 'foo'],
    ['foo # bar', 'foo'],
    ['# bar\nfoo', 'foo'],
    ['sum(# (\n foo # )\n)', 'foo'],
    ['foo{x="# no comment"} + bar', 'foo', 'bar'],
    ["foo{x='} + bar # \\' {'}", 'foo'],
    ['foo{x=`\\`} + bar{y=`"`}', 'foo', 'bar'],
    ['foo{x="\\""} + bar{y="\\\\"} + baz', 'foo', 'bar', 'baz'],
    ['{__name__="\\x66\\157\\u006f"}', 'foo'],
    ['{"\\U0001f600"}', '😀'],
  ])('are found in the query %s', (query, ...names) => {
    expect(metricsOf(query)).toEqual(names)
  })

  test.each([
    ['foo # a comment\n  + bar', 'foo + bar'],
    ["foo{x='a\"b',y=`\\d`}", 'foo { x = "a\\"b" , y = "\\\\d" }'],
    ['rate(foo[5m:1m]offset-5m)', 'rate ( foo [ 5m : 1m ] offset - 5m )'],
    ['{__name__="\\x66oo"}', '{ __name__ = "foo" }'],
  ])('are the same when the query %j is normalized to %j', (query, text) => {
    const parsed = parsePromql(query)
    expect(parsed.text).toBe(text)
    expect(parsePromql(text)).toEqual(parsed)
  })
})

describe('a query of metrics', () => {
  test.each([
    // A selector that does not name exactly one metric.
    ...['{job="x"}', '{}', 'sum({job="x"})', '{__name__=~"foo|bar"}', '{__name__=~"foo"}', '{__name__!="foo"}'],
    ...['{__name__!~"foo"}', 'foo{__name__="bar"}', 'foo{__name__="foo"}', 'foo{__name__=~".+"}', 'foo{"bar"}'],
    ...['foo{"__name__"="bar"}', 'foo{"__na\\x6de__"=~"bar"}', '{"foo","bar"}', '{"foo",__name__="bar"}', '{""}'],
    ...['{__name__=""}', '{__name__="foo",__name__!="bar"}', '{"foo",`__name__`!~"x"}'],
    // What is not in the grammar, or only in that of other servers.
    ...['', '# foo', 'foo bar', 'foo{', 'foo}', 'foo)', '(foo', 'foo{x}', 'foo{x=}', 'foo{x=1}', 'foo{x="1" y="2"}'],
    ...['foo{,}', 'foo{x="1"} {y="2"}', 'foo{x="1" or x="2"}', '{__name__="foo" or __name__="bar"}', 'foo{x=={}}'],
    ...['foo[', 'foo[]', 'foo[5m', 'foo[bar]', 'foo[5m:bar]', 'foo[:5m]', 'foo offset', 'foo offset bar', 'foo @ bar'],
    ...['foo @ start', 'foo @ start(bar)', 'foo +', '* foo', 'foo + * bar', 'foo == on bar', 'foo on(x) bar'],
    ...['foo + on(x', 'foo + on(1) bar', 'foo + on(a:b) bar', 'foo * group_left() bar', 'foo + bool bar'],
    ...['sum by (x)', 'sum by (x) foo', 'sum by foo', 'sum(foo) by (x) (bar)', 'sum(foo,)', 'rate(,foo)', 'foo, bar'],
    ...['on', 'ignoring', 'group_left', 'group_right', 'bool', 'atan2', 'inf{x="1"}', 'foo; bar', 'foo = bar'],
    ...['foo =~ "x"', '1foo', '0x', 'foo$', '$foo', 'f\u00f6o', 'foo\u00a0+ bar', '\ufefffoo', 'foo\u0000', '\ud800'],
    // Strings that do not end, or have an escape that is none.
    ...['foo{x="', 'foo{x=\'a"}', 'foo{x=`a', 'foo{x="a\nb"}', 'foo{x="\\"}', 'foo{x="\\q"}', 'foo{x="\\u12"}'],
    ...['{"\\xff"}', '{"\\400"}', '{"\\ud800"}', '{"\\U00110000"}', '{"\\constructor"}'],
    // Functions that are unknown, or read more than they name.
    ...[
      'info(foo)',
      'info(foo, {__name__=~".+"})',
      'Rate(foo[5m])',
      'foo(bar)',
      'by(bar)',
      'start()',
      'union(foo,bar)',
    ],
    ...['WITH (x = foo) x', 'constructor(foo)', 'rate{x="1"}(foo)', 'sum(foo) limit 2', 'foo keep_metric_names'],
  ])('is refused: %j', (query) => {
    expect(refusalOf(query)).toBe('refused')
  })

  test('is refused if it is too long or nested too deeply, and accepted up to that limit', () => {
    const nested = (depth: number) => `${'('.repeat(depth)}foo${')'.repeat(depth)}`
    expect(metricsOf(nested(64))).toEqual(['foo'])
    expect(refusalOf(nested(65))).toBe('refused')
    expect(refusalOf('abs('.repeat(900))).toBe('refused')
    expect(metricsOf(`${'-'.repeat(maxQueryLength - 3)}foo`)).toEqual(['foo'])
    expect(refusalOf(`${'-'.repeat(maxQueryLength - 2)}foo`)).toBe('refused')
  })

  test('that is refused gets an error that quotes nothing of it', () => {
    for (const query of ['{__name__=~"canary.*"}', 'canary canary', 'canary(foo)', 'foo{canary}'])
      expect(() => parsePromql(query)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining('canary') }),
      )
  })
})
