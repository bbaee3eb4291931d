# The picture of docs/performance.md, from what bench_scale wrote:
#   gnuplot -e "rows='bench/scale.csv'; picture='docs/scale.svg'" bench/scale.gp
set terminal svg size 720,320 font 'Arial,12' background rgb 'white'
set output picture
set datafile separator ','
set multiplot layout 1,2
set logscale x 2
set xtics ('1,024' 1024, '4,096' 4096, '16,384' 16384, '65,536' 65536)
set xrange [800:170000]
set xlabel 'GPUs'
set grid ytics lc rgb '#dddddd'
set key top left
set style line 1 lc rgb '#0072b2' pt 7 ps 0.6
set style line 2 lc rgb '#999999' dt 2

stats rows skip 1 using 1:4 nooutput name 'fit_'
set logscale y
set yrange [0.0003:1]
set title 'Seconds to simulate an iteration, one core'
plot rows skip 1 using 1:4 with points ls 1 title 'measured', \
     fit_slope * x + (fit_intercept > 0 ? fit_intercept : 0) with lines ls 2 title 'a straight line'

unset logscale y
set yrange [0:6]
set title 'Peak memory, MB'
plot rows skip 1 using 1:5 with linespoints ls 1 notitle
unset multiplot
