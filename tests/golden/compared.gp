# The picture of docs/schedules-compared.md, from its data, which compared.py writes; run in the repository's root:
#   gnuplot -e "rows='docs/schedules-compared.csv'; picture='docs/schedules-compared.svg'" tests/golden/compared.gp
set terminal svg size 1000,560 font 'Arial,12' background rgb 'white'
set output picture
set datafile separator comma
set multiplot layout 1,2 margins 0.06,0.985,0.19,0.93 spacing 0.045
set border 3 lc rgb '#888888'
set grid ytics lc rgb '#dcdcdc' lt 1 lw 0.5
set tics textcolor rgb '#444444'
set xtics nomirror 0.25
set ytics nomirror ('0' 0, '10%%' 0.1, '20%%' 0.2, '30%%' 0.3, '40%%' 0.4)
set xrange [0.25:1.625]
set yrange [0:0.45]
set xlabel "memory of activations, 1F1B's = 1" offset 0,0.3
set title font ',13' offset 0,-0.4
set style line 1 lc rgb '#0072b2' lw 2 pt 7 ps 0.35
set style line 2 lc rgb '#56b4e9' lw 2 pt 7 ps 0.35
set style line 3 lc rgb '#d55e00' lw 2 dt (8,5)
set style line 4 lc rgb '#d55e00' pt 6 ps 0.8 lw 1.6
set style line 5 lc rgb '#222222' pt 4 ps 0.7 lw 1.6

# Columns: F, B, W, comm, series, memory, bubble rate.
is_line(series) = series eq 'bound' || series[1:5] eq 'ours ' || series eq 'public V adaptive'
is_public(series) = series[1:7] eq 'public ' && !is_line(series)
is_other(series) = !is_line(series) && !is_public(series)
name(series) = is_public(series) ? series[8:] : series[1:6] eq '1F1B-I' ? '1F1B-I, v = ' . series[8:] : series

# Where a name stands beside its point, so that it covers no other and no line.
right(f, series) = f == 22 && series eq 'public ZB-V' ? -0.085 : series eq '1F1B-I 2' ? -0.09 : 0.02
up(f, series) = series eq 'public ZB-V' ? (f == 22 ? -0.016 : 0.012) : series eq 'DualPipeV' ? -0.013 : series eq '1F1B-I 4' ? 0.005 : series eq '1F1B-I 2' ? 0.018 : 0.012
x(f, is_one) = memory(f, is_one) + right(f, strcol(5))
y(f) = column(7) + up(f, strcol(5))
memory(f, is_one) = column(1) == f && is_one ? column(6) : NaN
of(f, series) = memory(f, strcol(5) eq series)

do for [f in '1 22'] {
    if (f == 1) {
        set title 'F = B = W, free transfers'
        set ylabel 'bubble rate (span)' offset 1,0
        unset key
    } else {
        set title 'F, B, W of 22, 24.6, 17; transfers of 0.3'
        unset ylabel
        set key at screen 0.52,0.085 center top maxrows 2 Left reverse samplen 2.5 width 2
    }
    plot rows skip 1 using (of(f, 'bound')):7 with filledcurves y1=0 lc rgb '#d4d4d4' title 'none exists (bound)', \
         '' skip 1 using (of(f, 'ours V')):7 with linespoints ls 1 title 'V, ours', \
         '' skip 1 using (of(f, 'ours linear')):7 with linespoints ls 2 title 'linear, ours', \
         '' skip 1 using (of(f, 'public V adaptive')):7 with lines ls 3 title 'V adaptive, public', \
         '' skip 1 using (memory(f, is_public(strcol(5)))):7 with points ls 4 title 'other V, public', \
         '' skip 1 using (memory(f, is_other(strcol(5)))):7 with points ls 5 title 'as frameworks ship, ZB-H1', \
         '' skip 1 using (x(f, is_public(strcol(5)))):(y(f)):(name(strcol(5))) with labels left font ',11' \
            tc rgb '#d55e00' notitle, \
         '' skip 1 using (x(f, is_other(strcol(5)))):(y(f)):(name(strcol(5))) with labels left font ',11' \
            tc rgb '#222222' notitle
}
unset multiplot
