# Gives every name on the command line content of its own, in place and by renaming, and says which of it is there then.
# `s` before a name: it stands there already, and a line is added to it.
use strict;
use warnings;
use Errno;
$| = 1;

sub is_evil {
    my ($name) = @_;
    open my $file, '<', $name or return 0;
    local $/;
    my $text = <$file>;
    return defined $text && $text =~ /evil/ ? 1 : 0;
}

sub put {
    my ($name, $mode) = @_;
    open my $file, $mode, $name or return 0;
    print $file 'evil';
    return close $file;
}

for my $word (@ARGV) {
    my ($kind, $name) = $word =~ /^(.)(.*)$/;
    put($name, $kind eq 's' ? '>>' : '>');
    my $opened = is_evil($name);
    unlink $name if $opened;
    # A file in the same directory, or in the project, if one can be made on the same mount.
    (my $beside = $name) =~ s{[^/]*$}{carried.txt};
    my $renamed = '-';
    for my $carried ($beside, 'carried.txt') {
        put($carried, '>') or next;
        my $is_done = rename $carried, $name;
        my $is_other_mount = !$is_done && $!{EXDEV};
        unlink $carried if !$is_done;
        next if $is_other_mount;
        $renamed = is_evil($name);
        unlink $name if $renamed;
        last;
    }
    print "$opened $renamed $name\n";
}
print "tried\n";
